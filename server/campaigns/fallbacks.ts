import { campaignVariables } from '../../contract/campaign-resource.ts'
import type { Constants } from '../database/tables/campaigns.ts'
import type { EmailFault } from '../emails/validate-email.ts'
import type { CampaignRow } from './queries.ts'

/*
 * Fallbacks of content: values for names that the variables of the campaign do not give. A template declares them; when
 * its copy becomes content of its own, they stay with that. `constants` of a draft are fallbacks, and of a campaign that
 * was sent its variables with the fallbacks.
 */

/** Why a value with a name that the campaign gives itself is refused. */
export const givenByCampaign = 'is given by the campaign itself; choose another name'

export function isOfCampaign(name: string): boolean {
  return campaignVariables.some((own) => own === name)
}

/** Returns values with fallbacks for names that have none. Null counts as none. */
export function withFallbacks(values: Constants, fallbacks: Constants | null): Constants {
  const missing = Object.entries(fallbacks ?? {}).filter(([name]) => !isGiven(values, name))
  return { ...values, ...Object.fromEntries(missing) }
}

export type Fallbacks = Record<string, string | number | boolean>

/** Returns the fallbacks in constants of a campaign or of its variant. Null: it has none of its own. */
export function fallbacksIn(
  { status, variables }: Pick<CampaignRow, 'status' | 'variables'>,
  constants: Constants | null,
): Fallbacks | null {
  if (constants === null) return null
  const fallbacks: Fallbacks = {}
  for (const [name, value] of Object.entries(constants)) {
    const isOwn = status === 'draft' || !isGiven(variables, name)
    if (isOwn && isFallback(value)) fallbacks[name] = value
  }
  return fallbacks
}

/** Returns the fallbacks of the content of a campaign. Null: it has none. */
export function fallbacksOf(row: Pick<CampaignRow, 'status' | 'variables' | 'constants'>): Fallbacks | null {
  const fallbacks = fallbacksIn(row, row.constants)
  return fallbacks === null || Object.keys(fallbacks).length === 0 ? null : fallbacks
}

/** Returns what is wrong with the names of fallbacks, for people. `path`: where they stand in the request. */
export function faultsOfFallbacks(fallbacks: Constants | null, path: string): EmailFault[] {
  return Object.keys(fallbacks ?? {})
    .filter(isOfCampaign)
    .map((name) => ({ path: `${path}.${name}`, message: givenByCampaign, isOfForm: false }))
}

/** Returns true for a value that a template may declare as a fallback. Null means that there is none. */
function isFallback(value: unknown): value is Fallbacks[string] {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}

function isGiven(values: Constants, name: string): boolean {
  return Object.hasOwn(values, name) && values[name] !== null && values[name] !== undefined
}
