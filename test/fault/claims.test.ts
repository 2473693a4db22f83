import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { connect, inTransaction } from '../../server/database/connection.ts'
import { cancelDeliveries } from '../../server/delivery/cancel.ts'
import { claimDue } from '../../server/delivery/claim.ts'
import { handBack } from '../../server/delivery/hand-back.ts'
import { takeOverKept } from '../../server/delivery/reconcile.ts'
import { settle } from '../../server/delivery/settle.ts'
import { fanOutBatch } from '../../server/outbox/fan-out.ts'
import type { Queue } from '../../server/queue/queue.ts'
import { type Engine, startEngine } from '../support/engine.ts'
import { dueFlows, intakeFor, someFlow } from '../support/flows.ts'
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
  const [row] = await engine.deliveriesOf(webhookId, (rows) => rows.length === 1)
  return row?.id ?? expect.fail('no delivery')
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

describe('a delivery claimed a second time', () => {
  it('is not sent before its time when the first worker settles in between', async () => {
    const id = await emitOne()
    const first = await claim()
    await lapse()
    expect(await claim({ afterClaim: () => settleAsFailed(first) })).toEqual([])
    expect(await engine.queue.missing(engine.db, [id])).toEqual([])
    await engine.advance(61)
    await engine.startWorkers()
    await engine.deliveriesOf(webhookId, ([row]) => row?.status === 'succeeded' && row.attempt_count === 2)
  })

  it('is settled once, whichever worker comes first', async () => {
    const id = await emitOne()
    const first = await claim()
    await lapse()
    const second = await claim()
    expect(second).toHaveLength(1)
    await settleAsFailed(first)
    await settleAsFailed(second)
    expect(await engine.attemptsOf(id)).toHaveLength(1)
    const [row] = await engine.deliveriesOf(webhookId, () => true)
    expect(row).toMatchObject({ status: 'pending', attempt_count: 1 })
    expect(await engine.queue.missing(engine.db, [id])).toEqual([])
  })

  it('keeps the time of its retry when the first worker hands it back late', async () => {
    await emitOne()
    const first = await claim()
    await lapse()
    await settleAsFailed(await claim())
    await handBack(engine, first)
    expect(await claim()).toEqual([])
  })
})

describe('a process whose clock is ahead of the database’s', () => {
  it('makes deliveries that are due at once all the same', async () => {
    await engine.emit()
    const clock = { now: () => new Date(engine.clock.now().getTime() + 3_600_000) }
    await fanOutBatch({ ...engine, clock })
    expect(await claim()).toHaveLength(1)
  })
})

describe('a delivery that changes between the claim and the reading', () => {
  it('keeps the job of a resend when the claim was for what was canceled', async () => {
    const id = await emitOne()
    expect(await claim({ afterClaim: cancelAll, beforeDrop: () => resend(id) })).toEqual([])
    expect(await engine.queue.missing(engine.db, [id])).toEqual([])
    await engine.startWorkers()
    await engine.deliveriesOf(webhookId, ([row]) => row?.status === 'succeeded')
  })
})

describe('a claim whose deliveries cannot be read', () => {
  it('gives them back, so that they do not wait for it to lapse', async () => {
    const id = await emitOne()
    const nowhere = connect({ connectionString: 'postgres://127.0.0.1:9/none', max: 1, onError: () => undefined })
    await expect(claimDue({ db: nowhere, queue: engine.queue }, await dueFlows(engine.queue, 10))).rejects.toThrow(
      'ECONNREFUSED',
    )
    await nowhere.destroy()
    expect((await claim()).map(({ delivery }) => delivery.id)).toEqual([id])
  })
})

describe('a delivery that cannot be made any more', () => {
  it('is canceled when its webhook is gone, deleted while the event was fanned out', async () => {
    const id = await emitOne()
    await engine.db.deleteFrom('webhooks').execute()
    expect(await claim()).toEqual([])
    const [row] = await engine.deliveriesOf(webhookId, () => true)
    expect(row).toMatchObject({ status: 'canceled', next_attempt_at: null })
    expect(await engine.queue.missing(engine.db, [id])).toEqual([id])
  })

  it('is canceled alone when its event is past retention', async () => {
    const [old] = await engine.emit(3)
    await engine.fanOut()
    await engine.db
      .deleteFrom('events')
      .where('id', '=', old ?? '')
      .execute()
    expect(await claim()).toHaveLength(2)
    const rows = await engine.deliveriesOf(webhookId, () => true)
    expect(rows.map((row) => [row.event_id === old, row.status])).toEqual([
      [true, 'canceled'],
      [false, 'pending'],
      [false, 'pending'],
    ])
  })

  it('fails alone, and is tried again, when the secret of its webhook cannot be read', async () => {
    const brokenId = await engine.addWebhook(receiver.url)
    await engine.db
      .updateTable('webhooks')
      .set({ secret: Buffer.alloc(60) })
      .where('id', '=', brokenId)
      .execute()
    await engine.emit(5)
    await engine.startWorkers()
    await engine.deliveriesOf(webhookId, (rows) => rows.filter((row) => row.status === 'succeeded').length === 5)
    const [row] = await engine.deliveriesOf(brokenId, (rows) => rows.every((one) => one.attempt_count === 1))
    expect(row?.status).toBe('pending')
    expect((await engine.attemptsOf(row?.id ?? ''))[0]?.error).toMatch(/fault of the service/)
  })
})

describe('a claim that lapses while its own process still has the delivery in hand', () => {
  it('goes on under the new claim: one request, one attempt', async () => {
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
    await engine.deliveriesOf(webhookId, ([row]) => row?.status === 'succeeded')
    expect(receiver.requests.map(({ headers }) => headers['webhook-id'])).toEqual([event])
    expect(await engine.attemptsOf(id)).toHaveLength(1)
  })
})

describe('deliveries whose process is gone since it fanned them out', () => {
  it('are made by another, each once, but for those that are not to be made any more', async () => {
    await engine.emit(5)
    const { kept } = await fanOutBatch({ ...engine, intake: intakeFor(10) })
    const [canceled, handedBack] = kept
    if (canceled === undefined || handedBack === undefined) return expect.fail('nothing was kept')
    await inTransaction(engine.db, (trx) => cancelDeliveries(trx, engine.queue, [canceled.delivery.id]))
    // It had begun to stop.
    await handBack(engine, [handedBack])
    expect((await claim()).map(({ delivery }) => delivery.id)).toEqual([handedBack.delivery.id])
    await engine.startWorkers()
    await lapse()
    await engine.deliveriesOf(webhookId, (rows) => rows.filter(({ status }) => status === 'succeeded').length === 4)
    const told = receiver.requests.map(({ headers }) => headers['webhook-id'])
    expect(told.toSorted()).toEqual(
      kept
        .slice(1)
        .map(({ delivery }) => delivery.eventId)
        .toSorted(),
    )
    expect(await engine.queue.withoutJob(engine.db, [canceled.delivery.id])).toEqual([canceled.delivery.id])
  })

  it('are due as if they had just come', async () => {
    await engine.emit(2)
    await fanOutBatch({ ...engine, intake: intakeFor(10) })
    expect(await claim()).toEqual([])
    await takeOverKept(engine, await idsOfKept())
    expect(await claim()).toEqual([])
    await sql`UPDATE pgboss.job SET state = 'retry' WHERE name = 'kept'`.execute(engine.db)
    expect(await takeOverKept(engine, await idsOfKept())).toBe(2)
    expect(await takeOverKept(engine, await idsOfKept())).toBe(0)
    expect(await claim()).toHaveLength(2)
  })
})

describe('a delivery that is still in hand when others take it over', () => {
  it('leaves no job behind when it is settled before that is claimed', async () => {
    const held: (() => void)[] = []
    receiver.respond((exchange) => held.push(() => answer(200)(exchange)))
    await engine.startWorkers()
    await engine.emit()
    await receiver.received(1)
    const id = await onlyId()
    // As when it has been taken over, but one that nobody claims yet.
    await inTransaction(engine.db, (trx) =>
      engine.queue.flows.put(trx, [{ deliveryId: id, flow: someFlow, dueAt: new Date('2100-01-01') }]),
    )
    for (const release of held) release()
    await engine.deliveriesOf(webhookId, ([row]) => row?.status === 'succeeded')
    expect(await engine.queue.withoutJob(engine.db, [id])).toEqual([id])
  })
})

async function idsOfKept(): Promise<string[]> {
  const { rows } = await sql<{ ids: string[] }>`
    SELECT data -> 'deliveryIds' AS ids FROM pgboss.job WHERE name = 'kept'
  `.execute(engine.db)
  return rows.flatMap(({ ids }) => ids)
}

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
