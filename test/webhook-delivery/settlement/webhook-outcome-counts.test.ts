import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Settlement } from '../../../server/webhook-delivery/settlement/settlement-types.ts'
import { createWebhookOutcomes } from '../../../server/webhook-delivery/settlement/webhook-outcome-counts.ts'
import type { TestDatabase } from '../../support/database.ts'
import { startTestQueue } from '../../support/queue.ts'

let database: TestDatabase
let stop: () => Promise<void>

beforeEach(async () => {
  ;({ database, stop } = await startTestQueue())
})
afterEach(() => stop())

function attempt(webhookId: string, kind: 'succeeded' | 'failed', durationMs: number): Settlement {
  return { delivery: { webhookId }, outcome: { durationMs }, verdict: { kind } } as unknown as Settlement
}

/** All that was counted, whatever five minutes it was in. */
async function counted() {
  const { sum, max } = database.db.fn
  const rows = await database.db
    .selectFrom('webhook_outcomes')
    .select([
      'webhook_id',
      sum('succeeded').as('succeeded'),
      sum('failed').as('failed'),
      sum('duration_ms').as('duration_ms'),
      max('max_duration_ms').as('max_duration_ms'),
    ])
    .groupBy('webhook_id')
    .orderBy('webhook_id')
    .execute()
  return rows.map((row) => [
    row.webhook_id,
    ...[row.succeeded, row.failed, row.duration_ms, row.max_duration_ms].map(Number),
  ])
}

test('what several processes count is added up, time after time', async () => {
  const [one, other] = [createWebhookOutcomes(database.db), createWebhookOutcomes(database.db)]
  for (let turn = 0; turn < 3; turn++) {
    for (const outcomes of [one, other]) {
      outcomes.add(attempt('wh_a', 'succeeded', 10.4))
      outcomes.add(attempt('wh_a', 'failed', 30 * (turn + 1)))
      outcomes.add(attempt('wh_b', 'failed', 5))
    }
    await Promise.all([one.write(), other.write()])
  }
  // With nothing to write it writes nothing.
  await one.write()
  expect(await counted()).toEqual([
    ['wh_a', 6, 6, 6 * 10 + 2 * (30 + 60 + 90), 90],
    ['wh_b', 0, 6, 30, 5],
  ])
})

test('what could not be written is written the next time', async () => {
  const outcomes = createWebhookOutcomes(database.db)
  await database.db.schema.alterTable('webhook_outcomes').renameTo('elsewhere').execute()
  outcomes.add(attempt('wh_a', 'succeeded', 10))
  await expect(outcomes.write()).rejects.toThrow('webhook_outcomes')
  await database.db.schema.alterTable('elsewhere').renameTo('webhook_outcomes').execute()
  outcomes.add(attempt('wh_a', 'failed', 7))
  await outcomes.write()
  expect(await counted()).toEqual([['wh_a', 1, 1, 17, 10]])
})

test('outcomes of 10,000 webhooks at most are counted in between', async () => {
  const outcomes = createWebhookOutcomes(database.db)
  for (let number = 0; number < 10_010; number++) outcomes.add(attempt(`wh_${number}`, 'succeeded', 1))
  await outcomes.write()
  expect(await counted()).toHaveLength(10_000)
})
