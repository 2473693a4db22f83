import type { Trx } from '../database/connection.ts'
import { figuresOfVariants } from '../statistics/campaign-figures.ts'
import { decide, winnerOf } from './ab-test.ts'
import { databaseMs } from './engine-queries.ts'
import { type CampaignRow, updateCampaign } from './queries.ts'
import { keyOf, rest, scopeOf, soonMs, type TurnResult, waitUntil } from './turns.ts'

const hourMs = 3_600_000

/**
 * Ends the turn of a locked campaign with a rest, whose test was sent to everybody in it: it waits for people to choose
 * the winner, or for its hours to pass. Then it chooses the winner itself, by what was counted at that moment.
 */
export async function awaitWinner(trx: Trx, before: CampaignRow, now: Date): Promise<TurnResult> {
  const nowMs = await databaseMs(trx)
  const row =
    before.ab_tested_at === null ? await updateCampaign(trx, keyOf(before), { ab_tested_at: new Date(nowMs) }) : before
  const { ab_test: test, ab_people: people, ab_tested_at: testedAt } = row
  if (test === null || testedAt === null) throw new Error(`the campaign ${row.id} has no test that is over`)
  const { winnerBy, hours } = test
  if (winnerBy === 'manual') return rest(trx, row, null, { reason: 'ab_test', until: null })
  // Of few people, by chance none is in the test: then there is nothing to wait for.
  const isEmpty = people?.every((count) => count === 0) ?? false
  const until = new Date(testedAt.getTime() + (isEmpty ? 0 : (hours ?? 0) * hourMs))
  if (nowMs < until.getTime()) return waitUntil(trx, row, { reason: 'ab_test', until })
  const counted = await figuresOfVariants(trx, scopeOf(row), row.id)
  const none = { sent: 0, opened: 0, clicked: 0 }
  const winner = winnerOf(
    test.variants.map((_, number) => counted.get(number) ?? none),
    winnerBy,
  )
  return rest(trx, await decide(trx, keyOf(row), { winner, at: now }), soonMs)
}
