import { campaignVariables } from '../../contract/campaign-resource.ts'
import { fallbackValue } from '../../contract/template-variables.ts'
import type { Constants } from '../database/tables/campaigns.ts'
import type { EmailFault } from '../emails/validate-email.ts'
import type { CampaignRow } from './queries.ts'

/*
 * Fallbacks of content: values for names that the variables of the campaign do not give. A template declares them; when
 * its copy becomes content of its own, they stay with that. `constants` of a draft are fallbacks, and of a campaign that
 * was sent its variables with the fallbacks.
 */

/** Why a value with a name that the campaign gives itself is refused. */
export const givenByCampaign = 'is given by the campaign itself'

export function isOfCampaign(name: string): boolean {
  return campaignVariables.some((own) => own === name)
}

/** Returns values with fallbacks for names that have none. Null counts as none. */
export function withFallbacks(values: Constants, fallbacks: Constants | null): Constants {
  const missing = Object.entries(fallbacks ?? {}).filter(([name]) => !isGiven(values, name))
  return { ...values, ...Object.fromEntries(missing) }
}

/** Returns the fallbacks in constants of a campaign or of its variant. Null: it has none of its own. */
export function fallbacksIn(
  { status, variables }: Pick<CampaignRow, 'status' | 'variables'>,
  constants: Constants | null,
): Constants | null {
  if (constants === null || status === 'draft') return constants
  return Object.fromEntries(
    Object.entries(constants).filter(([name, value]) => value !== null && !isGiven(variables, name)),
  )
}

/** Returns the fallbacks of the content of a campaign. Null: it has none. */
export function fallbacksOf(row: Pick<CampaignRow, 'status' | 'variables' | 'constants'>): Constants | null {
  const fallbacks = fallbacksIn(row, row.constants)
  return fallbacks === null || Object.keys(fallbacks).length === 0 ? null : fallbacks
}

/** Returns what is wrong with fallbacks, for people. `path`: where they stand in the request. */
export function faultsOfFallbacks(fallbacks: Constants | null, path: string): EmailFault[] {
  return Object.entries(fallbacks ?? {}).flatMap(([name, value]) => {
    const [issue] = fallbackValue.safeParse(value).error?.issues ?? []
    const message = isOfCampaign(name) ? givenByCampaign : issue?.message
    return message === undefined ? [] : [{ path: `${path}.${name}`, message, isOfForm: false }]
  })
}

function isGiven(values: Constants, name: string): boolean {
  return Object.hasOwn(values, name) && values[name] !== null && values[name] !== undefined
}
