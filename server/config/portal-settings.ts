import { z } from 'zod'
import { accentColorPattern, colorSchemes, defaultMaxCustomerWebhooks } from '../../contract/portal-sessions.ts'
import { commaSeparatedList, numberSetting, optionalSetting, setting } from './setting-kinds.ts'

/** An origin as it stands in a Content-Security-Policy: nothing in it can end the directive. */
const origin = z
  .string()
  .max(300)
  .regex(/^https?:\/\/(\*\.)?[a-z0-9.-]+(:[0-9]{1,5})?$/)

/** The settings of the portal. */
export const portalSettings = {
  PORTAL_ORIGINS: optionalSetting(
    {
      unit: 'list',
      default: null,
      meaning:
        'Origins of the sites that may show the portal in a frame. Without any it is shown as a page of its own only.',
      allowed: 'origins in lower case without a path, such as https://app.example.com,https://*.shop.example',
    },
    commaSeparatedList.pipe(z.array(origin).max(50)),
  ),
  PORTAL_ACCENT_COLOR: optionalSetting(
    {
      unit: 'colour',
      default: 'that of Postern',
      meaning: 'The colour of buttons and links in the portal, where its session does not say.',
      allowed: 'a colour such as #0f766e',
    },
    z.string().regex(accentColorPattern),
  ),
  PORTAL_COLOR_SCHEME: setting(
    {
      unit: 'name',
      default: 'auto',
      meaning: 'Whether the portal is light or dark, where its session does not say; `auto`: as the browser asks for.',
      allowed: '"auto", "light" or "dark"',
    },
    z.enum(colorSchemes),
  ),
  MAX_WEBHOOKS_PER_CUSTOMER: numberSetting({
    unit: 'webhooks',
    default: defaultMaxCustomerWebhooks,
    min: 1,
    max: 1_000,
    meaning: 'Webhooks of each mode that a customer can have in the portal. A customer with more keeps them.',
  }),
}
