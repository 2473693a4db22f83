import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventType } from '../../../contract/event-types.ts'
import { contract } from '../../../contract/index.ts'
import { type Mode, modes } from '../../../contract/mode.ts'
import { inTransaction } from '../../../server/database/connection.ts'
import { systemClock } from '../../../server/lib/clock.ts'
import { createOutbox } from '../../../server/outbox/append.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { startTestService, type TestService } from '../../support/service.ts'

/*
 * A recovery across modes: it makes up for the events a webhook would have been sent, and those alone.
 */

let service: TestService
let receivers: Record<Mode, Receiver>
let webhooks: Record<Mode, string>
const since = new Date().toISOString()
const types = ['email.bounced', 'contact.deleted'] as const

const clientOf = (mode: Mode) => service.client.as(service.keys[mode])

async function forBoth<T>(make: (mode: Mode) => Promise<T>): Promise<Record<Mode, T>> {
  return { live: await make('live'), test: await make('test') }
}

beforeEach(async () => {
  service = await startTestService()
  receivers = await forBoth(() => startReceiver())
  webhooks = await forBoth(async (mode) => {
    const body = { url: receivers[mode].url, events: [...types] }
    return (await clientOf(mode).succeed(contract.webhooks.create, { body })).id
  })
  await setStatus('disabled')
})
afterEach(async () => {
  await service.stop()
  for (const mode of modes) await receivers[mode].stop()
})

async function setStatus(status: 'enabled' | 'disabled'): Promise<void> {
  for (const mode of modes) {
    await clientOf(mode).succeed(contract.webhooks.update, { params: { id: webhooks[mode] }, body: { status } })
  }
}

/** One event of each type, caused in a mode, that no webhook is sent. */
async function miss(mode: Mode): Promise<{ email: string; shared: string }> {
  const { db } = service.database
  const outbox = createOutbox({ clock: systemClock, wake: () => undefined })
  const [email = '', shared = ''] = await inTransaction(db, (trx) =>
    outbox.append(
      trx,
      { accountId: service.accountId, mode },
      types.map((type) => ({ type, data: eventType(type).exampleBody.data }) as never),
    ),
  )
  return { email, shared }
}

const recover = (mode: Mode) =>
  clientOf(mode).succeed(contract.deliveries.recover, { params: { id: webhooks[mode] }, body: { since } })
const received = (mode: Mode) =>
  receivers[mode].requests.map(({ headers }) => `${headers['webhook-id']} ${headers['x-service-mode']}`).toSorted()

test('a webhook gets the email events of its own mode, and shared events of both, with their modes', async () => {
  const missed = await forBoth(miss)
  await expect.poll(() => service.database.db.selectFrom('outbox_rows').selectAll().execute()).toEqual([])
  await setStatus('enabled')
  expect(await recover('test')).toMatchObject({ count: 3, countIsExact: true })
  const shared = modes.map((mode) => `${missed[mode].shared} ${mode}`)
  await expect.poll(() => received('test')).toEqual([`${missed.test.email} test`, ...shared].toSorted())
  // A recovery of one webhook sends nothing to another.
  expect(received('live')).toEqual([])
  expect(await recover('live')).toMatchObject({ count: 3, countIsExact: true })
  await expect.poll(() => received('live')).toEqual([`${missed.live.email} live`, ...shared].toSorted())
  const { db } = service.database
  await expect
    .poll(() => db.selectFrom('webhook_recoveries').select('done').where('status', '=', 'completed').execute())
    .toEqual([{ done: 3 }, { done: 3 }])
  expect(await db.selectFrom('deliveries').select('id').execute()).toHaveLength(6)
})

test('a key recovers no webhook of the other mode, and nothing is sent', async () => {
  await forBoth(miss)
  await setStatus('enabled')
  for (const [key, mode] of [
    ['test', 'live'],
    ['live', 'test'],
  ] as const) {
    const path = `/v1/webhooks/${webhooks[mode]}/recover`
    expect(await clientOf(key).send('POST', path, { json: { since } })).toMatchObject({ status: 404 })
  }
  expect(await service.database.db.selectFrom('webhook_recoveries').selectAll().execute()).toEqual([])
})
