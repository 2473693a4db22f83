import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { contract } from '../../contract/index.ts'
import { createApiKeyService } from '../../server/api-keys/service.ts'
import { systemClock } from '../../server/clock.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { newId } from '../../server/ids.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { fanOutBatch } from '../../server/outbox/fan-out.ts'
import { createTurns } from '../../server/queue/turns.ts'
import { createTestTime } from '../support/clock.ts'
import { createTestDatabase } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { answer, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { startLoad } from './support/load.ts'
import { rounds, within } from './support/rounds.ts'
import { type Stage, setStage } from './support/stage.ts'
import { subscribe } from './support/subscribe.ts'

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
  it.each([
    { about: 'in time', secondsAgo: 0 },
    { about: 'of long ago, when a process starts', secondsAgo: 100 },
  ])('does not have others wait behind all of it: with turns $about', async ({ secondsAgo }) => {
    const flood = 2_000
    await using engine = await startEngine()
    await using flooded = await startReceiver()
    await using other = await startReceiver()
    await engine.workers.stop(1_000)
    await engine.addWebhook(flooded.url)
    await engine.emit(flood)
    const clock = { now: () => new Date(engine.clock.now().getTime() - secondsAgo * 1_000) }
    const turns = createTurns()
    while ((await fanOutBatch({ ...engine, clock, turns })).isFull);

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

describe('an account that floods within a large limit of its own', () => {
  /** The machine is shared, too: the others wait for it, but not for all that the flood has caused. */
  const slower = 20
  /** Of the flood's requests, for which a delivery waits until a place is free; for all of them it would be dozens. */
  const waitedFor = 3

  it.each([
    { webhooks: 1, writes: rounds({ short: 60, long: 600 }) },
    // What it leaves behind has to be delivered in the end, over few places: 20 for each of its writes.
    { webhooks: 20, writes: rounds({ short: 60, long: 180 }) },
  ])(
    'has the others keep their rate, of requests and of deliveries, beside $webhooks webhooks',
    within(2),
    async ({ webhooks, writes }) => {
      await using database = await createTestDatabase()
      await using stage = await setStage({ ...database, webhooks: 1, env: fewPlaces })
      const key = await addAccount(stage)
      const recorder = { ...stage.recorder, url: `${stage.recorder.url}/flood` }
      await subscribe({ url: stage.service.url, key, recorder, count: webhooks })

      await using warmingUp = stage.startLoad()
      await warmingUp.acknowledged(100)
      await warmingUp.stop()
      const calm = await measure(stage, writes)
      await using flood = startLoad({
        ledger: stage.ledger,
        url: () => stage.service.url,
        key,
        operation: { path: '/v1/subscribers', body: (email) => ({ email }), status: 201 },
        writers: 8,
        paceMs: 0,
      })
      await flood.acknowledged(100)
      const beside = await measure(stage, writes, flood.acknowledged(2 * writes))
      await flood.stop()
      stage.recorder.respond(answer(200))
      expect(beside.writesPerSecond).toBeGreaterThan(calm.writesPerSecond / 2)
      expect(beside.deliveriesPerSecond).toBeGreaterThan(calm.deliveriesPerSecond / 2)
      expect(beside.answerMs).toBeLessThan(calm.answerMs * slower)
      expect(beside.deliveryMs).toBeLessThan(calm.deliveryMs + waitedFor * floodedMs)
      expect(await stage.verdict()).toEqual([])
    },
  )
})

/** Another account, which may send as much as the one of the stage. Answers its key. */
async function addAccount({ db }: Stage): Promise<string> {
  const service = createApiKeyService({ clock: systemClock })
  const { id } = await service.createAccount(db, { name: 'Flood', plan: 'scale' })
  const { key } = await service.create(db, {
    accountId: id,
    mode: 'live',
    permissions: ['full_access'],
    name: 'A key',
  })
  return key
}

/** Too few for the flood, whose endpoints take their time: its deliveries pile up. */
const fewPlaces = { DELIVERY_CONCURRENCY: '16', WEBHOOK_CONCURRENCY: '16' }
const floodedMs = 100

type Measured = { writesPerSecond: number; deliveriesPerSecond: number; answerMs: number; deliveryMs: number }

/** So many writes a second that there is time for each, also beside a flood. */
const steady = { writers: 16, paceMs: 500 }

/** What the account of the stage gets while it sends steadily, until so many of its writes are delivered and `meanwhile` is over. */
async function measure(stage: Stage, writes: number, meanwhile?: Promise<void>): Promise<Measured> {
  const answers: number[] = []
  const acknowledgedAt = new Map<string, number>()
  const arrivedAt = new Map<string, number>()
  stage.recorder.respond((exchange) => {
    const { data } = JSON.parse(String(exchange.request.body))
    arrivedAt.set(data.email, performance.now())
    setTimeout(() => answer(200)(exchange), exchange.request.url.startsWith('/hooks/flood') ? floodedMs : 0)
  })
  const startedAt = performance.now()
  await using load = stage.startLoad({
    ...steady,
    onAcknowledged(mark, tookMs) {
      answers.push(tookMs)
      acknowledgedAt.set(mark, performance.now())
    },
  })
  await Promise.all([load.acknowledged(writes), meanwhile])
  const written = answers.length
  const writtenMs = performance.now() - startedAt
  await load.stop()
  const marks = [...acknowledgedAt.keys()]
  await expect.poll(() => marks.filter((mark) => !arrivedAt.has(mark)).length, { timeout: 60_000 }).toBe(0)
  const deliveredMs = Math.max(...marks.map((mark) => arrivedAt.get(mark) ?? 0)) - startedAt
  const waits = marks.map((mark) => Math.max(0, (arrivedAt.get(mark) ?? 0) - (acknowledgedAt.get(mark) ?? 0)))
  return {
    writesPerSecond: (written * 1_000) / writtenMs,
    deliveriesPerSecond: (marks.length * 1_000) / deliveredMs,
    answerMs: median(answers),
    deliveryMs: median(waits),
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
