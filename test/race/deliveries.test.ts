import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { reconcile } from '../../server/webhook-delivery/reconcile.ts'
import { claimDue } from '../../server/webhook-delivery/scheduling/claim.ts'
import { handBack } from '../../server/webhook-delivery/scheduling/hand-back.ts'
import { settle } from '../../server/webhook-delivery/settlement/settle-attempts.ts'
import type { Settlement } from '../../server/webhook-delivery/settlement/settlement-types.ts'
import { startEngine } from '../support/engine.ts'
import { dueFlows } from '../support/flows.ts'
import { live } from '../support/scope.ts'

/*
 * All that touches deliveries at once, in an order nobody chose: workers that claim, settle and hand
 * back, the fan-out, webhooks disabled, enabled and moved to other URLs, recoveries and resends.
 */

const rounds = 25

function pick<T>(list: readonly T[]): T {
  return list[Math.floor(Math.random() * list.length)] ?? expect.fail('nothing to pick from')
}

/** Without 410: a worker whose settlement would deadlock by canceling makes it again. */
const verdicts: Settlement['verdict'][] = [
  { kind: 'succeeded' },
  { kind: 'retry', delaySeconds: 0, error: 'no' },
  { kind: 'retry', delaySeconds: 60, error: 'no' },
  { kind: 'failed', error: 'no' },
]

test('whatever happens at once, nothing is lost, nothing is counted twice, and nobody waits for ever', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  const { db, queue, deliveries, accountId } = engine
  const webhookIds: string[] = []
  for (let count = 0; count < 4; count++) webhookIds.push(await engine.addWebhook('http://127.0.0.1:9/'))
  await engine.emit(100)
  await engine.fanOut()

  async function repeat(work: () => Promise<unknown>): Promise<void> {
    for (let round = 0; round < rounds; round++) await work()
  }

  async function workLikeAWorker(): Promise<void> {
    const { claims } = await claimDue(engine, await dueFlows(queue, 15))
    const shuffled = claims.toSorted(() => Math.random() - 0.5)
    const back = shuffled.splice(0, shuffled.length / 4)
    await handBack(engine, back)
    const outcome = {
      kind: 'answered',
      durationMs: 1,
      status: 200,
      body: '',
      retryAfterSeconds: null,
      reposted: false,
    } as const
    const startedAt = engine.clock.now()
    await settle(
      engine,
      shuffled.map(({ delivery }) => ({ delivery, outcome: { ...outcome, startedAt }, verdict: pick(verdicts) })),
    )
  }

  async function disable(id: string): Promise<void> {
    await inTransaction(db, async (trx) => {
      await trx.selectFrom('webhooks').select('id').where('id', '=', id).forNoKeyUpdate().execute()
      await deliveries.cancelPending(trx, id)
      await trx
        .updateTable('webhooks')
        .set({ status: 'disabled', disabled_reason: 'manual' })
        .where('id', '=', id)
        .execute()
    })
  }

  async function enable(id: string): Promise<void> {
    await db.updateTable('webhooks').set({ status: 'enabled', disabled_reason: null }).where('id', '=', id).execute()
  }

  async function move(id: string): Promise<void> {
    const url = `http://127.0.0.1:9/${pick(['a', 'b', 'c'])}`
    await db.updateTable('webhooks').set({ url }).where('id', '=', id).execute()
  }

  async function resendSome(): Promise<void> {
    const rows = await db
      .selectFrom('deliveries')
      .select(['id', 'webhook_id'])
      .orderBy(sql`random()`)
      .limit(5)
      .execute()
    for (const { id, webhook_id } of rows) {
      await deliveries.resend(db, live(accountId), webhook_id, id).catch((error) => {
        if (error.code !== 'webhook_disabled') throw error
      })
    }
  }

  /** A recovery of the same webhook may be running, or the webhook be disabled. */
  async function recoverOne(): Promise<void> {
    await engine.recover(pick(webhookIds), new Date(0)).catch((error) => {
      if (error.code !== 'webhook_disabled') throw error
    })
  }

  await Promise.all([
    repeat(() => engine.emit(10)),
    repeat(() => engine.fanOut()),
    repeat(workLikeAWorker),
    repeat(workLikeAWorker),
    repeat(workLikeAWorker),
    repeat(() => disable(pick(webhookIds))),
    repeat(() => enable(pick(webhookIds))),
    repeat(() => enable(pick(webhookIds))),
    repeat(recoverOne),
    repeat(recoverOne),
    repeat(resendSome),
    repeat(resendSome),
    repeat(() => move(pick(webhookIds))),
    repeat(() => move(pick(webhookIds))),
  ])
  await engine.fanOut()

  expect(await reconcile(engine)).toBe(0)
  const { rows } = await sql<{ outbox: number; miscounted: number; unfinished: number; doubled: number }>`
    SELECT
      (SELECT count(*)::int FROM outbox_rows) AS outbox,
      (SELECT count(*)::int FROM deliveries d
        WHERE attempt_count <> (SELECT count(*) FROM attempts a WHERE a.delivery_id = d.id)) AS miscounted,
      (SELECT count(*)::int FROM deliveries WHERE (status = 'pending') <> (next_attempt_at IS NOT NULL)) AS unfinished,
      (SELECT count(*)::int - count(DISTINCT (webhook_id, event_id))::int FROM deliveries) AS doubled
  `.execute(db)
  expect(rows).toEqual([{ outbox: 0, miscounted: 0, unfinished: 0, doubled: 0 }])
})
