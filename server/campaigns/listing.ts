import { timezoneProperty } from '../../contract/campaign-times.ts'
import { isAudience } from '../audiences/presence.ts'
import type { Trx } from '../database/connection.ts'
import { storeCampaignLinks } from '../statistics/campaign-links.ts'
import { findProperties } from '../subscribers/properties.ts'
import { latenessOf, listRecipients, zonesOfNext } from './engine-queries.ts'
import { linksIn } from './links.ts'
import { sendTimesOf } from './local-times.ts'
import { type CampaignRow, updateCampaign } from './queries.ts'
import { conditionOf } from './segments.ts'
import {
  type EngineMeans,
  factsOf,
  keyOf,
  rest,
  scopeOf,
  soonMs,
  stopFor,
  type TurnResult,
  withLocked,
} from './turns.ts'
import { contentsOf } from './variants.ts'

/** Contacts that one transaction looks at for the list of recipients. */
const listedAtOnce = 10_000
/** How late a campaign with `lateStart: skip` may start. Milliseconds. */
const lateMs = 10 * 60_000

/** Lists the next recipients of a campaign that is scheduled, and starts sending after the last. */
export async function list(means: EngineMeans, claimed: CampaignRow): Promise<TurnResult> {
  const { db, clock } = means
  const result = await withLocked(db, claimed, async (trx, row) => {
    if (row.status !== 'scheduled') return rest(trx, row, soonMs)
    const skip = (reason: string) => stopFor(trx, means, { row, move: 'skip', reason })
    const late = await latenessOf(trx, keyOf(row))
    if (late < 0) return rest(trx, row, -late)
    if (row.listed_at === null && row.late_start === 'skip' && late > lateMs) {
      const why = row.failed_turns > 0 ? 'its recipients could not be listed' : 'the service was not running then'
      return skip(`It was to start at ${row.scheduled_at?.toISOString()}, and ${why}: "lateStart" is "skip".`)
    }
    if (!(await isAudience(trx, row.account_id, row.audience_id))) {
      return skip('The audience was deleted before the campaign started.')
    }
    const listedAt = row.listed_at ?? clock.now()
    const condition = await conditionOf(trx, row, listedAt)
    if (typeof condition === 'string') return skip(condition)
    const next = { ...row, listed_at: listedAt }
    const times = await timesOfNext(trx, row)
    const { last, count, looked, inTest } = await listRecipients(trx, next, { limit: listedAtOnce, condition, times })
    const listed = {
      listed_at: listedAt,
      listed_to: last ?? row.listed_to,
      recipient_count: row.recipient_count + count,
      ...(row.ab_test && { ab_people: inTest.map((more, number) => (row.ab_people?.[number] ?? 0) + more) }),
    }
    if (looked === listedAtOnce) {
      await updateCampaign(trx, keyOf(row), listed)
      return rest(trx, row, soonMs)
    }
    return start(trx, means, { row: { ...row, ...listed }, listed })
  })
  return result ?? 'waits'
}

/** Returns when the people who are listed next may get it. Null: the campaign has no local time. */
async function timesOfNext(trx: Trx, row: CampaignRow) {
  const { local_time: localTime, fallback_timezone: fallback } = row
  if (localTime === null || fallback === null) return null
  const declared = await findProperties(trx, row.account_id)
  const hasZones = declared.some(({ key, type }) => key === timezoneProperty && type === 'string')
  const zones = hasZones ? await zonesOfNext(trx, row, { limit: listedAtOnce, property: timezoneProperty }) : []
  return { property: timezoneProperty, ...(await sendTimesOf(localTime, { zones, fallback })) }
}

async function start(
  trx: Trx,
  { clock, outbox }: EngineMeans,
  { row, listed }: { row: CampaignRow; listed: Partial<CampaignRow> },
): Promise<TurnResult> {
  const at = clock.now()
  await updateCampaign(trx, keyOf(row), { ...listed, status: 'sending', started_at: at, updated_at: at })
  if (row.track_clicks) {
    const { own, variants } = await contentsOf(trx, row)
    const htmls = (variants.length === 0 ? [own] : variants).map(({ html }) => html ?? '')
    await storeCampaignLinks(trx, keyOf(row), htmls.flatMap(linksIn))
  }
  const recipients = { total: row.recipient_count }
  await outbox.append(trx, scopeOf(row), [{ type: 'campaign.sent', data: { ...factsOf(row), recipients } }])
  return rest(trx, row, soonMs)
}
