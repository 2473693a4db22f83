import { campaignLimits } from '../../contract/campaign-resource.ts'
import { timezoneProperty } from '../../contract/campaign-times.ts'
import type { SendCampaign } from '../../contract/campaigns.ts'
import type { Trx } from '../database/connection.ts'
import { isTimeZone } from '../lib/time-zones.ts'
import { brokenRule } from '../shared/errors.ts'
import { findProperties } from '../subscribers/properties.ts'
import { firstSendTime, readLocalTime, sendTimeIn } from './local-times.ts'
import type { CampaignRow } from './queries.ts'

/** When a campaign is to start, as it was asked for. Null: now. */
export type StartTime = Date | LocalStart | null
/** The zone is that of people whose own is not known. Undefined: the fallback of the property, or else UTC. */
type LocalStart = { localTime: string; fallbackTimezone: string | undefined }

/** Reads the body of a request. Throws `rule_violation` for fields that do not go together. */
export function startTimeOf(body: SendCampaign | undefined): StartTime {
  const { scheduledAt, localTime, fallbackTimezone } = body ?? {}
  if (localTime === undefined && fallbackTimezone !== undefined) {
    throw brokenRule('body.fallbackTimezone', 'must not be given without localTime')
  }
  if (localTime === undefined) return scheduledAt === undefined ? null : new Date(scheduledAt)
  if (scheduledAt !== undefined) throw brokenRule('body.localTime', 'must not be given beside scheduledAt')
  return { localTime, fallbackTimezone }
}

type Start = Pick<CampaignRow, 'local_time' | 'fallback_timezone'> & { scheduled_at: Date }

const dayMs = 24 * 3_600_000

/** Returns when a campaign starts. Throws `rule_violation` for a time that is not to come, and for unknown zones. */
export async function startOf(
  trx: Trx,
  { account_id: accountId, ab_test: test }: Pick<CampaignRow, 'account_id' | 'ab_test'>,
  { when, now }: { when: StartTime; now: Date },
): Promise<Start> {
  if (when !== null && 'localTime' in when) {
    if (test !== null) throw brokenRule('body.localTime', 'must not be given for a campaign with an A/B test')
    return localStartOf(trx, accountId, { when, now })
  }
  const fault = when === null ? null : faultOfTime(when, now)
  if (fault !== null) throw brokenRule('body.scheduledAt', fault)
  return { scheduled_at: when ?? now, local_time: null, fallback_timezone: null }
}

async function localStartOf(
  trx: Trx,
  accountId: string,
  { when, now }: { when: LocalStart; now: Date },
): Promise<Start> {
  const localTime = readLocalTime(when.localTime)
  if (localTime === null) throw brokenRule('body.localTime', 'must be a day that exists')
  const declared = await findProperties(trx, accountId)
  const property = declared.find(({ key }) => key === timezoneProperty)
  if (property?.type !== 'string') {
    const message = `needs the contact property "${timezoneProperty}" with the type "string": declare it with POST /v1/contact-properties`
    throw brokenRule('body.localTime', message)
  }
  const given = when.fallbackTimezone
  if (given !== undefined && !isTimeZone(given)) {
    throw brokenRule('body.fallbackTimezone', 'must be an IANA time zone such as Europe/Berlin')
  }
  const ofProperty = String(property.fallback ?? '')
  const fallback = given ?? (isTimeZone(ofProperty) ? ofProperty : 'UTC')
  const fault = faultOfTime(sendTimeIn(fallback, localTime), now)
  if (fault !== null) throw brokenRule('body.localTime', `${fault}, in the time zone ${fallback}`)
  const first = firstSendTime(localTime)
  return { scheduled_at: first > now ? first : now, local_time: localTime, fallback_timezone: fallback }
}

function faultOfTime(at: Date, now: Date): string | null {
  const aheadMs = at.getTime() - now.getTime()
  if (aheadMs <= 0) return 'must be in the future'
  const { scheduleDays } = campaignLimits
  return aheadMs > scheduleDays * dayMs ? `must be at most ${scheduleDays} days ahead` : null
}
