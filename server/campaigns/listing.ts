import { timezoneProperty } from '../../contract/campaign-times.ts'
import { isAudience } from '../audiences/presence.ts'
import type { Trx } from '../database/connection.ts'
import { isTimedOut, limitStatements } from '../database/statement-timeout.ts'
import { storeCampaignLinks } from '../statistics/campaign-links.ts'
import { findProperties } from '../subscribers/properties.ts'
import { databaseMs, latenessOf, listRecipients, zonesOfNext } from './engine-queries.ts'
import { linksIn } from './links.ts'
import { sendTimesOf } from './local-times.ts'
import { type CampaignRow, updateCampaign } from './queries.ts'
import { conditionOf } from './segments.ts'
import {
  atOnce,
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

/** Contacts that a turn looks at for the list of recipients. */
const listedAtOnce = 10_000
/** How late a campaign with `lateStart: skip` may start. Milliseconds. */
const lateMs = 10 * 60_000

/*
 * How long a person takes to be compared with segments depends on the conditions, and on how many emails the person got:
 * from microseconds to seconds. Campaigns get their turns one after the other, so a turn looks at few people first, and
 * then at as many as there is time for.
 */

/** Time in which a turn compares people with segments. Milliseconds. */
const comparingMs = 1_000
/** Contacts that its first transaction looks at: fewer after a turn that failed, perhaps because that took too long. */
const firstCompared = 16
/** Each transaction looks at so many times the contacts of the one before, at most: the next ones may take longer. */
const growth = 4
/** A statement that compares people is canceled after this time. Milliseconds. */
const longestMs = 5_000

/** Lists the next recipients of a campaign that is scheduled, and starts sending after the last. */
export async function list(means: EngineMeans, claimed: CampaignRow): Promise<TurnResult> {
  const most = atOnce(means, listedAtOnce)
  if (claimed.segment_ids.length === 0) {
    return (await step(means, claimed, { limit: most, timeoutMs: null })) ?? 'went on'
  }
  const { comparingTimeoutMs: timeoutMs = longestMs } = means
  const since = performance.now()
  let done = 0
  let limit = claimed.failed_turns > 0 ? 1 : firstCompared
  while (limit > 0) {
    try {
      const result = await step(means, claimed, { limit, timeoutMs })
      if (result !== null) return result
    } catch (error) {
      // The recipients that were listed before stay, and the next turn begins with few people again.
      if (done > 0 && isTimedOut(error)) break
      throw error
    }
    done += limit
    limit = nextToCompare(limit, { done, most, takenMs: performance.now() - since })
  }
  return 'went on'
}

/** Returns how many contacts to look at next, `most` in a turn, when `done` took `takenMs`. 0: the turn is over. */
function nextToCompare(last: number, { done, most, takenMs }: { done: number; most: number; takenMs: number }): number {
  const inTime = takenMs === 0 ? most : ((comparingMs - takenMs) * done) / takenMs
  return Math.max(0, Math.floor(Math.min(growth * last, most - done, inTime)))
}

/**
 * Looks at the next `limit` contacts, in a transaction. Returns null when there may be more.
 *
 * @param timeoutMs Of each statement. Null: none.
 */
async function step(
  means: EngineMeans,
  claimed: CampaignRow,
  { limit, timeoutMs }: { limit: number; timeoutMs: number | null },
): Promise<TurnResult | null> {
  return withLocked(means.db, claimed, async (trx, row): Promise<TurnResult | null> => {
    // Started by another worker, or canceled.
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
    // PostgreSQL's time, as for `created_at` of contacts: everybody who was added before is listed.
    const listedAt = row.listed_at ?? new Date(await databaseMs(trx))
    const whom = await conditionOf(trx, row, listedAt)
    if (typeof whom === 'string') return skip(whom)
    const next = { ...row, listed_at: listedAt }
    if (timeoutMs !== null) await limitStatements(trx, timeoutMs)
    const times = await timesOfNext(trx, row, limit)
    const { last, count, looked, inTest } = await listRecipients(trx, next, { limit, condition: whom.condition, times })
    const listed = {
      listed_at: listedAt,
      listed_segments: whom.segments,
      listed_to: last ?? row.listed_to,
      recipient_count: row.recipient_count + count,
      ...(row.ab_test && { ab_people: inTest.map((more, number) => (row.ab_people?.[number] ?? 0) + more) }),
    }
    if (looked === limit) {
      await updateCampaign(trx, keyOf(row), listed)
      await rest(trx, row, soonMs)
      return null
    }
    return start(trx, means, { row: { ...row, ...listed }, listed })
  })
}

/** Returns when the people who are listed next may get it. Null: the campaign has no local time. */
async function timesOfNext(trx: Trx, row: CampaignRow, limit: number) {
  const { local_time: localTime, fallback_timezone: fallback } = row
  if (localTime === null || fallback === null) return null
  const declared = await findProperties(trx, row.account_id)
  const hasZones = declared.some(({ key, type }) => key === timezoneProperty && type === 'string')
  const zones = hasZones ? await zonesOfNext(trx, row, { limit, property: timezoneProperty }) : []
  return { property: timezoneProperty, ...(await sendTimesOf(localTime, { zones, fallback })) }
}

async function start(
  trx: Trx,
  { clock, outbox }: EngineMeans,
  { row, listed }: { row: CampaignRow; listed: Partial<CampaignRow> },
): Promise<TurnResult> {
  const at = clock.now()
  await updateCampaign(trx, keyOf(row), {
    ...listed,
    listed_segments: null,
    status: 'sending',
    started_at: at,
    updated_at: at,
  })
  if (row.track_clicks) {
    const { own, variants } = await contentsOf(trx, row)
    const htmls = (variants.length === 0 ? [own] : variants).map(({ html }) => html ?? '')
    await storeCampaignLinks(trx, keyOf(row), htmls.flatMap(linksIn))
  }
  const recipients = { total: row.recipient_count }
  await outbox.append(trx, scopeOf(row), [{ type: 'campaign.sent', data: { ...factsOf(row), recipients } }])
  return rest(trx, row, soonMs)
}
