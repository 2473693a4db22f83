import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { connect, type Db, inTransaction } from '../../server/database/connection.ts'
import { fanOutBatch } from '../../server/fan-out/fan-out.ts'
import { uuidOf } from '../../server/shared/ids.ts'
import type { ExchangeOutcome } from '../../server/webhook-delivery/attempt/exchange.ts'
import type { DueDelivery } from '../../server/webhook-delivery/load-deliveries.ts'
import { claimDue } from '../../server/webhook-delivery/scheduling/claim.ts'
import { handBack } from '../../server/webhook-delivery/scheduling/hand-back.ts'
import { finishEvents } from '../../server/webhook-delivery/settlement/finish-events.ts'
import { settle } from '../../server/webhook-delivery/settlement/settle-attempts.ts'
import type { Settlement } from '../../server/webhook-delivery/settlement/settlement-types.ts'
import { startHolder } from '../fault/support/sessions.ts'
import { startEngine } from '../support/engine.ts'
import { dueFlows, takingFor } from '../support/flows.ts'
import { untilSessionsWait } from '../support/locks.ts'

/*
 * Statements that change the same rows at once. A transaction of somebody else's holds the first row, until both
 * statements wait: then each has what the other needs, unless both lock in one order.
 */

/** An engine without workers, with webhooks in the order of their ids. */
async function startQuietEngine({ webhooks }: { webhooks: number }) {
  const engine = await startEngine()
  onTestFinished(() => engine.stop())
  await engine.workers.stop(1_000)
  const ids: string[] = []
  for (let count = 0; count < webhooks; count++) ids.push(await engine.addWebhook(`http://127.0.0.1:9/${count}`))
  const claimAll = async (events: number) => {
    await engine.emit(events)
    await engine.fanOut()
    const { claims } = await claimDue(engine, await dueFlows(engine.queue, 10))
    return claims.toSorted((a, b) => (a.delivery.id < b.delivery.id ? -1 : 1))
  }
  return { ...engine, webhookIds: ids.toSorted(), claimAll }
}

/** Has the first row held until `first` waits for it and then `second`; both are to end well. */
async function meet(
  { db, connectionString }: Pick<Awaited<ReturnType<typeof startQuietEngine>>, 'db' | 'connectionString'>,
  { held, first, second }: { held: string; first: () => Promise<unknown>; second: () => Promise<unknown> },
): Promise<void> {
  await using holder = await startHolder(connectionString)
  await holder.run(held)
  const one = first()
  await untilSessionsWait(db, 1)
  const other = second()
  await untilSessionsWait(db, 2)
  await holder.commit()
  expect(await Promise.allSettled([one, other])).toMatchObject([{ status: 'fulfilled' }, { status: 'fulfilled' }])
}

function failed(delivery: DueDelivery): Settlement {
  const outcome: ExchangeOutcome = {
    kind: 'answered',
    durationMs: 1,
    status: 500,
    body: '',
    retryAfterSeconds: null,
    reposted: false,
    startedAt: new Date(),
  }
  return { delivery, outcome, verdict: { kind: 'retry', delaySeconds: 60, error: 'no' } }
}

function succeeded(delivery: DueDelivery): Settlement {
  const { outcome } = failed(delivery)
  return { delivery, outcome, verdict: { kind: 'succeeded' } }
}

test('events are finished beside a settlement for the same webhooks', async () => {
  const engine = await startQuietEngine({ webhooks: 2 })
  const [first, second] = engine.webhookIds
  const claims = await engine.claimAll(1)
  await engine.emit(1)
  const taking = takingFor(2)
  const [event] = (await fanOutBatch({ ...engine, taking })).leased
  if (event === undefined) expect.fail('no event was leased')
  const deliveries = event.deliveries.map((delivery) => ({
    delivery,
    end: delivery.webhookId === second ? failed(delivery) : ('claimed' as const),
  }))
  await meet(engine, {
    held: `SELECT FROM webhooks WHERE id = '${first}' FOR UPDATE`,
    first: () =>
      settle(
        engine,
        claims.map(({ delivery }) => failed(delivery)),
      ),
    second: () => finishEvents(engine, taking.lease, [{ event, deliveries }]),
  })
})

/** Sessions whose plans read rows in the order in which they lie in the table. */
function inOrderOfTables(connectionString: string): Db {
  const sessionOptions = '-c enable_indexscan=off -c enable_mergejoin=off -c enable_nestloop=off'
  const db = connect({ connectionString, max: 2, sessionOptions, onError: () => undefined })
  onTestFinished(() => db.destroy())
  return db
}

test('deliveries are canceled while they are handed back', async () => {
  const engine = await startQuietEngine({ webhooks: 1 })
  const [webhookId = ''] = engine.webhookIds
  const claims = await engine.claimAll(2)
  const job = uuidOf(claims[0]?.delivery.id ?? '')
  // From now on it lies behind the other in the table.
  await sql`UPDATE pgboss.job SET created_on = created_on - interval '1 ms' WHERE id = ${job}`.execute(engine.db)
  await meet(engine, {
    held: `SELECT FROM pgboss.job WHERE id = '${job}' FOR UPDATE`,
    first: () => inTransaction(engine.db, (trx) => engine.deliveries.cancelPending(trx, webhookId)),
    second: () => handBack({ ...engine, db: inOrderOfTables(engine.connectionString) }, claims),
  })
})

test('two webhooks are disabled by one settlement while deliveries of both are settled', async () => {
  const engine = await startQuietEngine({ webhooks: 2 })
  const { db } = engine
  const [w1, w2] = engine.webhookIds
  const claims = await engine.claimAll(2)
  const of = (id: string | undefined) => claims.filter(({ delivery }) => delivery.webhookId === id)
  // The first of the second webhook is before the last of the first.
  const [early, late] = [of(w2)[0], of(w1).at(-1)]
  if (early === undefined || late === undefined) expect.fail('too few deliveries')
  const [low, high] = [early, late].toSorted((a, b) => (a.delivery.id < b.delivery.id ? -1 : 1))
  expect([low, high]).toEqual([early, late])
  const gone = claims.filter((claim) => claim !== early && claim !== late)
  await meet(engine, {
    held: `SELECT FROM deliveries WHERE id = '${early.delivery.id}' FOR UPDATE`,
    first: () =>
      settle(
        engine,
        [early, late].map(({ delivery }) => succeeded(delivery)),
      ),
    second: () =>
      settle(
        engine,
        gone.map(({ delivery }) => ({ ...failed(delivery), verdict: { kind: 'gone', error: 'no' } as const })),
      ),
  })
  const { rows } = await sql<{ disabled: number }>`
    SELECT count(*)::int AS disabled FROM webhooks WHERE disabled_reason = 'gone'
  `.execute(db)
  expect(rows).toEqual([{ disabled: 2 }])
})

test('claims are kept alive and dropped beside jobs that are locked', async () => {
  const engine = await startQuietEngine({ webhooks: 1 })
  const { db, queue } = engine
  const claims = await engine.claimAll(2)
  const claimed = claims.map((claim) => claim.claimed)
  const [first, second] = claimed.map(({ claim }) => claim.id)
  await using holder = await startHolder(engine.connectionString)
  await holder.run(`SELECT FROM pgboss.job WHERE id = '${first}' FOR UPDATE`)
  await sql`UPDATE pgboss.job SET heartbeat_on = NULL WHERE id = ${second}`.execute(db)
  await queue.keepAlive(claimed)
  const alive = sql`SELECT FROM pgboss.job WHERE id = ${second} AND heartbeat_on IS NOT NULL`
  expect((await alive.execute(db)).rows).toHaveLength(1)
  await queue.drop(db, claimed)
  await holder.commit()
  const { rows } = await sql<{ id: string }>`SELECT id FROM pgboss.job WHERE name = 'deliveries'`.execute(db)
  expect(rows).toEqual([{ id: first }])
})
