import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { connect, inTransaction } from '../../server/database/connection.ts'
import { fanOutBatch } from '../../server/fan-out/fan-out.ts'
import type { Queue } from '../../server/queue/queue.ts'
import { takeOverKept } from '../../server/webhook-delivery/reconcile.ts'
import { claimDue } from '../../server/webhook-delivery/scheduling/claim.ts'
import { handBack } from '../../server/webhook-delivery/scheduling/hand-back.ts'
import { finishEvents } from '../../server/webhook-delivery/settlement/finish-events.ts'
import { settle } from '../../server/webhook-delivery/settlement/settle-attempts.ts'
import { holdMonotonicClock } from '../support/clock.ts'
import { attempted, type Engine, hasSucceeded, startEngine } from '../support/engine.ts'
import { asQueued, dueFlows, takingFor } from '../support/flows.ts'
import { keepAsBefore } from '../support/kept.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { live } from '../support/scope.ts'

/*
 * Two workers hold one delivery only when the claim of the first has lapsed: its process was stopped
 * for a while, or could not reach the database. The tests play the workers' steps one by one.
 */

let engine: Engine
let receiver: Receiver
let webhookId: string

beforeEach(async () => {
  engine = await startEngine()
  receiver = await startReceiver()
  webhookId = await engine.addWebhook(receiver.url)
  await engine.workers.stop(1_000)
})
afterEach(async () => {
  await engine.stop()
  await receiver.stop()
})

/** A delivery that is due, with no worker running. */
async function emitOne(): Promise<string> {
  await engine.emit()
  await engine.fanOut()
  return onlyId()
}

async function onlyId(): Promise<string> {
  return (await engine.deliveryOf(webhookId)).id
}

/** Claims all fresh deliveries; between the claim and what follows, `meanwhile` happens. */
async function claim(meanwhile: Partial<Record<'afterClaim' | 'beforeDrop', () => Promise<unknown>>> = {}) {
  const queue: Queue = {
    ...engine.queue,
    flows: {
      ...engine.queue.flows,
      async claim(wanted) {
        const jobs = await engine.queue.flows.claim(wanted)
        await meanwhile.afterClaim?.()
        return jobs
      },
    },
    async drop(handle, claimed) {
      await meanwhile.beforeDrop?.()
      await engine.queue.drop(handle, claimed)
    },
  }
  return (await claimDue({ ...engine, queue }, await dueFlows(queue, 10))).claims
}

type Claims = Awaited<ReturnType<typeof claim>>

/** Settles what was claimed as a failed first attempt. */
async function settleAsFailed(claims: Claims): Promise<void> {
  await settle(
    engine,
    claims.map(({ delivery }) => ({
      delivery,
      outcome: {
        kind: 'answered',
        startedAt: new Date(),
        durationMs: 1,
        status: 500,
        body: '',
        retryAfterSeconds: null,
        reposted: false,
      },
      verdict: { kind: 'retry', delaySeconds: 60, error: 'no' },
    })),
  )
}

/** Lets the claims of workers that are silent lapse. */
async function lapse(): Promise<void> {
  await engine.advance(60)
  await engine.tick(60)
}

const cancelAll = () => inTransaction(engine.db, (trx) => engine.deliveries.cancelPending(trx, webhookId))
const resend = (id: string) => engine.deliveries.resend(engine.db, live(engine.accountId), webhookId, id)

test('a delivery claimed a second time is not sent before its time when the first worker settles in between', async () => {
  const id = await emitOne()
  const first = await claim()
  await lapse()
  expect(await claim({ afterClaim: () => settleAsFailed(first) })).toEqual([])
  expect(await engine.queue.missing(engine.db, [id])).toEqual([])
  await engine.advance(61)
  await engine.startWorkers()
  expect(await engine.deliveryOf(webhookId, hasSucceeded)).toMatchObject({ attempt_count: 2 })
})

test('a delivery claimed a second time is settled once, whichever worker comes first', async () => {
  const id = await emitOne()
  const first = await claim()
  await lapse()
  const second = await claim()
  expect(second).toHaveLength(1)
  await settleAsFailed(first)
  await settleAsFailed(second)
  expect(await engine.attemptsOf(id)).toHaveLength(1)
  const [row] = await engine.deliveriesNow(webhookId)
  expect(row).toMatchObject({ status: 'pending', attempt_count: 1 })
  expect(await engine.queue.missing(engine.db, [id])).toEqual([])
})

test('a delivery claimed a second time keeps the time of its retry when the first worker hands it back late', async () => {
  await emitOne()
  const first = await claim()
  await lapse()
  await settleAsFailed(await claim())
  await handBack(engine, first)
  expect(await claim()).toEqual([])
})

test('a process whose clock is ahead of the database’s makes deliveries that are due at once all the same', async () => {
  await engine.emit()
  const clock = { now: () => new Date(engine.clock.now().getTime() + 3_600_000) }
  await fanOutBatch({ ...engine, clock })
  expect(await claim()).toHaveLength(1)
})

test('a delivery that changes between the claim and the reading keeps the job of a resend when the claim was for what was canceled', async () => {
  const id = await emitOne()
  expect(await claim({ afterClaim: cancelAll, beforeDrop: () => resend(id) })).toEqual([])
  expect(await engine.queue.missing(engine.db, [id])).toEqual([])
  await engine.startWorkers()
  await engine.deliveryOf(webhookId, hasSucceeded)
})

test('a claim whose deliveries cannot be read gives them back, so that they do not wait for it to lapse', async () => {
  const id = await emitOne()
  const nowhere = connect({ connectionString: 'postgres://127.0.0.1:9/none', max: 1, onError: () => undefined })
  await expect(claimDue({ db: nowhere, queue: engine.queue }, await dueFlows(engine.queue, 10))).rejects.toThrow(
    'ECONNREFUSED',
  )
  await nowhere.destroy()
  expect((await claim()).map(({ delivery }) => delivery.id)).toEqual([id])
})

test('a delivery that cannot be made any more is canceled when its webhook is gone, deleted while the event was fanned out', async () => {
  const id = await emitOne()
  await engine.db.deleteFrom('webhooks').execute()
  expect(await claim()).toEqual([])
  const [row] = await engine.deliveriesNow(webhookId)
  expect(row).toMatchObject({ status: 'canceled', next_attempt_at: null })
  expect(await engine.queue.missing(engine.db, [id])).toEqual([id])
})

test('a delivery that cannot be made any more is canceled alone when its event is past retention', async () => {
  const [old] = await engine.emit(3)
  await engine.fanOut()
  await engine.db
    .deleteFrom('events')
    .where('id', '=', old ?? '')
    .execute()
  expect(await claim()).toHaveLength(2)
  const rows = await engine.deliveriesNow(webhookId)
  expect(rows.map((row) => [row.event_id === old, row.status])).toEqual([
    [true, 'canceled'],
    [false, 'pending'],
    [false, 'pending'],
  ])
})

test('a delivery that cannot be made any more fails alone, and is tried again, when the secret of its webhook cannot be read', async () => {
  const brokenId = await engine.addWebhook(receiver.url)
  await engine.db
    .updateTable('webhooks')
    .set({ secret: Buffer.alloc(60) })
    .where('id', '=', brokenId)
    .execute()
  await engine.emit(5)
  await engine.startWorkers()
  await engine.deliveriesOf(webhookId, 5, hasSucceeded)
  const [row] = await engine.deliveriesOf(brokenId, 5, attempted(1))
  expect(row?.status).toBe('pending')
  expect((await engine.attemptsOf(row?.id ?? ''))[0]?.error).toMatch(/fault of the service/)
})

test('a claim that lapses while its own process still has the delivery in hand goes on under the new claim: one request, one attempt', async () => {
  const held: (() => void)[] = []
  receiver.respond((exchange) => held.push(() => answer(200)(exchange)))
  await engine.startWorkers()
  const [event] = await engine.emit()
  await receiver.received(1)
  const id = await onlyId()
  const [job] = await claimedAgain(async () => {
    await engine.advance(60)
    await engine.tick(60)
  })
  expect(job).toBeDefined()
  for (const release of held) release()
  await engine.deliveryOf(webhookId, hasSucceeded)
  expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([event])
  expect(await engine.attemptsOf(id)).toHaveLength(1)
})

test('what another process has claimed meanwhile begins no attempt in the first, where it still waits in hand', async () => {
  const time = holdMonotonicClock()
  await engine.startWorkers()
  await engine.emit()
  await engine.deliveryOf(webhookId, hasSucceeded)
  const held: (() => void)[] = []
  receiver.respond((exchange) => held.push(() => answer(200)(exchange)))
  await engine.emit(20)
  await engine.deliveriesOf(webhookId, 21)
  const sent = () => receiver.requests.map(({ headers }) => headers['webhook-id'])
  const begun = sent().length
  expect(begun).toBeLessThan(21)

  const { rows: taken } = await sql<{ event_id: string }>`
    WITH job AS (
      UPDATE pgboss.job SET retry_count = retry_count + 1 WHERE name = 'deliveries' AND state = 'active' RETURNING id
    )
    SELECT event_id FROM deliveries WHERE status = 'pending' AND NOT event_id = ANY(${sent()}::text[])
  `.execute(engine.db)
  expect(taken.length).toBeGreaterThan(0)
  time.advance(16_000)
  receiver.respond(answer(200))
  for (const release of held) release()
  const [last = ''] = await engine.emit()
  await expect.poll(sent).toContain(last)
  expect(sent()).toHaveLength(begun + 1)
})

test('events whose process is gone since it leased them are delivered by another when the lease has lapsed, each once, and a late end of the first changes nothing', async () => {
  const emitted = await engine.emit(5)
  const taking = takingFor(10)
  const { leased } = await fanOutBatch({ ...engine, taking })
  expect(leased.map(({ id }) => id)).toEqual(emitted)
  await engine.fanOut()
  expect(await engine.deliveriesNow(webhookId)).toEqual([])
  await lapse()
  await engine.startWorkers()
  await engine.deliveriesOf(webhookId, 5, hasSucceeded)
  expect(receiver.requests.map(({ headers }) => headers['webhook-id']).toSorted()).toEqual(emitted.toSorted())
  expect(await finishEvents(engine, taking.lease, leased.map(asQueued))).toEqual(new Set())
  expect(await engine.deliveriesNow(webhookId)).toHaveLength(5)
})

test('events whose process is gone since it leased them are leased anew, and not made again, where they are still in hand', async () => {
  await engine.emit(2)
  const taking = takingFor(10)
  expect((await fanOutBatch({ ...engine, taking })).leased).toHaveLength(2)
  await lapse()
  const renewing = await fanOutBatch({ ...engine, taking: { ...taking, isOpen: () => true } })
  expect(renewing).toMatchObject({ leased: [], queued: [], looked: { from: 'front', isAll: true }, rest: false })
  // Nobody else has them, and they are this process's.
  await engine.fanOut()
  expect(await engine.deliveriesNow(webhookId)).toEqual([])
  const { rows } = await sql<{ lease: string }>`SELECT lease FROM outbox_rows`.execute(engine.db)
  expect(rows).toEqual([{ lease: taking.lease }, { lease: taking.lease }])
})

test('events whose process is gone since it leased them leave the outbox with their deliveries, or not at all', async () => {
  const [first, second] = await engine.emit(2)
  const taking = takingFor(10)
  const { leased } = await fanOutBatch({ ...engine, taking })
  await sql`UPDATE outbox_rows SET lease = gen_random_uuid() WHERE event_id = ${second}`.execute(engine.db)
  expect(await finishEvents(engine, taking.lease, leased.map(asQueued))).toEqual(new Set([first]))
  expect((await engine.deliveriesNow(webhookId)).map((row) => row.event_id)).toEqual([first])
  expect(await claim()).toHaveLength(1)
})

test('deliveries that a process of the version before kept and that is gone are due as if they had just come', async () => {
  await engine.emit(2)
  await engine.fanOut()
  const ids = (await engine.deliveriesNow(webhookId)).map(({ id }) => id)
  await inTransaction(engine.db, (trx) => engine.queue.remove(trx, ids))
  const keptBy = await keepAsBefore(engine.db, ids)
  expect(await takeOverKept(engine, ids)).toBe(0)
  expect(await claim()).toEqual([])
  await sql`UPDATE pgboss.job SET state = 'retry' WHERE id = ${keptBy}`.execute(engine.db)
  expect(await takeOverKept(engine, ids)).toBe(2)
  expect(await takeOverKept(engine, ids)).toBe(0)
  expect(await claim()).toHaveLength(2)
})

/** Has the claims lapse until the worker has made one anew. */
async function claimedAgain(lapseOnce: () => Promise<void>) {
  for (;;) {
    await lapseOnce()
    const { rows } = await sql<{ id: string }>`
      SELECT id FROM pgboss.job WHERE name = 'deliveries' AND state = 'active' AND retry_count > 0
    `.execute(engine.db)
    if (rows.length > 0) return rows
  }
}
