import { expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { cancelPending, cancelRest } from '../../server/webhook-delivery/cancel.ts'
import { type DeliveryState, type Engine, startEngine } from '../support/engine.ts'

/** More than is canceled at once. */
const many = 5_010

const isCanceled = ({ status }: DeliveryState) => status === 'canceled'

/** A webhook with so many deliveries pending, and nobody who works. */
async function backlog(engine: Engine): Promise<string> {
  await engine.workers.stop(1_000)
  const id = await engine.addWebhook('http://127.0.0.1:9/')
  await engine.emit(many)
  await engine.fanOut()
  return id
}

test('disabling a webhook cancels a first part of a long backlog at once, and the rest in the background', async () => {
  await using engine = await startEngine()
  const id = await backlog(engine)
  await inTransaction(engine.db, async (trx) => {
    await engine.deliveries.cancelPending(trx, id)
    await trx.deleteFrom('webhooks').where('id', '=', id).execute()
  })
  const first = await engine.deliveriesNow(id)
  expect(first.filter(isCanceled)).toHaveLength(5_000)
  await engine.tick(2)
  const rows = await engine.deliveriesOf(id, many, isCanceled)
  const ids = rows.map((row) => row.id)
  expect(await engine.queue.missing(engine.db, ids)).toEqual(ids)
})

test('disabling a webhook leaves the rest alone when the webhook is enabled again meanwhile', async () => {
  await using engine = await startEngine()
  const id = await backlog(engine)
  await cancelRest(engine, { webhookId: id })
  expect((await engine.deliveriesNow(id)).filter(isCanceled)).toEqual([])
})

test('disabling a webhook cancels as many at once for several webhooks together, and the rest of each in the background', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  const ids = [await engine.addWebhook('http://127.0.0.1:9/a'), await engine.addWebhook('http://127.0.0.1:9/b')]
  await engine.emit(many / 2)
  await engine.fanOut()
  await inTransaction(engine.db, async (trx) => {
    await cancelPending(trx, engine.queue, ids)
    await trx
      .updateTable('webhooks')
      .set({ status: 'disabled', disabled_reason: 'gone' })
      .where('id', 'in', ids)
      .execute()
  })
  const first = await Promise.all(ids.map((id) => engine.deliveriesNow(id)))
  expect(first.flat()).toHaveLength(many)
  expect(first.flat().filter(isCanceled)).toHaveLength(5_000)
  await engine.tick(2)
  for (const id of ids) await engine.deliveriesOf(id, many / 2, isCanceled)
})
