import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { contract } from '../../contract/index.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { newId } from '../../server/ids.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { createTestTime } from '../support/clock.ts'
import { startEngine } from '../support/engine.ts'
import { startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * One account that sends and causes as much as it can, beside one that does little.
 */

describe('an account that floods the API', () => {
  let service: TestService

  beforeEach(async () => {
    // Time stands still, so that all of it falls into one window.
    service = await startTestService({ roles: { worker: false }, time: createTestTime() })
  })
  afterEach(() => service.stop())

  const addressOf = (who: string, index: number) => ({ json: { email: `${who}${index}@example.com` } })

  it('is refused beyond its own limit, and nothing of the others is counted against them', async () => {
    const limited = service.client.as(service.keys.limited)
    const flood = Array.from({ length: 400 }, (_, index) =>
      limited.send('POST', '/v1/subscribers', addressOf('flood', index)),
    )
    const others = Array.from({ length: 40 }, (_, index) =>
      service.client.send('POST', '/v1/subscribers', addressOf('other', index)),
    )
    const statusesOf = async (answers: typeof flood) => (await Promise.all(answers)).map(({ status }) => status)

    expect(new Set(await statusesOf(others))).toEqual(new Set([201]))
    const refused = (await statusesOf(flood)).filter((status) => status === 429)
    expect(refused).toHaveLength(399)
    const { headers } = await service.client.send('GET', '/v1/event-types')
    expect(headers['x-ratelimit-remaining']).toBe(String(Number(headers['x-ratelimit-limit']) - 41))
  })

  it('causes no event with what was refused', async () => {
    const limited = service.client.as(service.keys.limited)
    await Promise.all(
      Array.from({ length: 50 }, (_, index) => limited.send('POST', '/v1/subscribers', addressOf('flood', index))),
    )
    await service.client.succeed(contract.subscribers.create, { body: { email: 'other@example.com' } })
    const events = await service.database.db.selectFrom('events').select('account_id').execute()
    expect(events).toHaveLength(2)
    expect(events.filter((event) => event.account_id === service.accountId)).toHaveLength(1)
  })
})

describe('an account that floods the deliveries', () => {
  it('does not have others wait behind all of it', async () => {
    const flood = 2_000
    await using engine = await startEngine()
    await using flooded = await startReceiver()
    await using other = await startReceiver()
    await engine.workers.stop(1_000)
    await engine.addWebhook(flooded.url)
    await engine.emit(flood)
    await engine.fanOut()

    const accountId = newId('account', engine.clock.now())
    await engine.db.insertInto('accounts').values({ id: accountId, name: 'Other', plan: 'scale' }).execute()
    const webhookId = await engine.addWebhook(other.url, ['contact.created'])
    await engine.db.updateTable('webhooks').set({ account_id: accountId }).where('id', '=', webhookId).execute()
    const outbox = createOutbox({ clock: engine.clock, wake: () => undefined })
    const data = {
      subscriberId: newId('subscriber', engine.clock.now()),
      audienceId: newId('audience', engine.clock.now()),
      email: 'ada@example.com',
      status: 'active' as const,
    }
    await inTransaction(engine.db, (trx) => outbox.append(trx, accountId, [{ type: 'contact.created', data }]))
    await engine.fanOut()

    let floodedBefore = Number.POSITIVE_INFINITY
    other.respond(({ response }) => {
      floodedBefore = flooded.requests.length
      response.end()
    })
    await engine.startWorkers()
    await other.received(1)
    expect(floodedBefore).toBeLessThan(flood / 2)
  })
})
