import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { initialLimit } from '../../server/webhook-delivery/scheduling/flow-limit.ts'
import { createKeyServices } from '../support/api-keys.ts'
import { createTestTime, stopMonotonicClock } from '../support/clock.ts'
import { createTestDatabase } from '../support/database.ts'
import { startEngine } from '../support/engine.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
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

  test('an account that floods the API is refused beyond its own limit, and nothing of the others is counted against them', async () => {
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

  test('an account that floods the API causes no event with what was refused', async () => {
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
  test('an account that floods the deliveries does not have others wait behind all of it in the queue', async () => {
    const flood = 2_000
    await using engine = await startEngine()
    await using flooded = await startReceiver()
    await using other = await startReceiver()
    await engine.workers.stop(1_000)
    await engine.addWebhook(flooded.url)
    await engine.emit(flood)
    await engine.fanOut()
    const neighbour = await engine.addAccount()
    await engine.addWebhook(other.url, ['contact.deleted'], neighbour)
    await engine.emit(1, 'contact.deleted', neighbour)

    let floodedBefore = Number.POSITIVE_INFINITY
    other.respond(({ response }) => {
      floodedBefore = flooded.requests.length
      response.end()
    })
    await engine.startWorkers()
    await other.received(1)
    expect(floodedBefore).toBeLessThan(flood / 20)
  })

  describe.each([1, 20])('to %i URLs that do not answer', (urls) => {
    test(
      'a flood of deliveries leaves a place to each delivery of another account, although none of its own ends',
      within(1),
      async () => {
        await using scene = await setScene({ urls, otherUrls: 1 })
        await scene.flood(1_600 / urls)
        await scene.flooded.received(urls === 1 ? initialLimit : mostUnanswered)
        for (let round = 1; round <= rounds({ short: 20, long: 200 }); round++) {
          await scene.flood(160 / urls)
          await scene.emitOther(1)
          await scene.other.received(round)
          scene.other.endOldest()
        }
        expect(scene.flooded.requests).toHaveLength(urls === 1 ? initialLimit : mostUnanswered)
      },
    )
  })

  test('an account that floods the deliveries has as many places as another account with as much to deliver, when enough of its own have ended', async () => {
    const urls = 20
    await using scene = await setScene({ urls, otherUrls: urls })
    const { flooded, other } = scene
    // All are known to answer.
    await Promise.all([scene.flood(1), scene.emitOther(1)])
    for (let answered = 1; answered <= urls; answered++) {
      await Promise.all([flooded.received(answered), other.received(answered)])
      flooded.endOldest()
      other.endOldest()
    }
    await scene.flood(80)
    await flooded.received(urls + mostOfOne)
    await scene.emitOther(10)
    // Three of the sixteen were left.
    await other.received(urls + places - mostOfOne)
    for (let ended = 0; ended < mostOfOne - mostOfTwo; ended++) flooded.endOldest()
    await other.received(urls + mostOfTwo)
    expect(flooded.requests).toHaveLength(urls + mostOfOne)
  })
})

/** Each account holds fewer than four times those that are free: 13 of 16, or 7 and 7. */
const [places, mostOfOne, mostOfTwo] = [16, 13, 7]
/** The same of the 12 places for endpoints that have not answered yet. */
const mostUnanswered = 10

type Scene = AsyncDisposable & {
  flooded: Holder
  other: Holder
  /** Commits events of the flood: each is for all of its webhooks. */
  flood(count: number): Promise<unknown>
  /** The same for the other account. */
  emitOther(count: number): Promise<unknown>
}

/** A process with an account whose flood may take all of its places and fill the queue, and another account. */
async function setScene({ urls, otherUrls }: { urls: number; otherUrls: number }): Promise<Scene> {
  // Nothing is silent for too long.
  stopMonotonicClock()
  await using starting = new AsyncDisposableStack()
  const engine = starting.use(await startEngine({ places, endpointMax: places }))
  const [flooded, other] = [starting.use(await startHolder()), starting.use(await startHolder())]
  const neighbour = await engine.addAccount()
  for (let count = 0; count < urls; count++) await engine.addWebhook(`${flooded.url}/${count}`)
  for (let count = 0; count < otherUrls; count++) {
    await engine.addWebhook(`${other.url}/${count}`, ['contact.deleted'], neighbour)
  }
  const running = starting.move()
  return {
    flooded,
    other,
    flood: (count) => engine.emit(count),
    emitOther: (count) => engine.emit(count, 'contact.deleted', neighbour),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** A receiver whose requests stay in flight until the test ends them. */
type Holder = Receiver & {
  /** Answers the oldest request that is in flight. */
  endOldest(): void
}

async function startHolder(): Promise<Holder> {
  const receiver = await startReceiver()
  const inFlight: ServerResponse[] = []
  receiver.respond(({ response }) => void inFlight.push(response))
  return { ...receiver, endOldest: () => inFlight.shift()?.end() }
}

const floodWriters = 8
/** Requests of the flood that are answered during one of another account. All of the writers are first, some twice. */
const answeredBefore = 3 * floodWriters

test.each([
  { webhooks: 1, writes: rounds({ short: 60, long: 600 }) },
  // The backlog of the flood must be delivered in the end over few places: 20 deliveries for each of its writes.
  { webhooks: 20, writes: rounds({ short: 30, long: 180 }) },
])(
  'an account that floods within a large limit of its own has the requests of others wait for few of its own, and loses nothing, beside $webhooks webhooks',
  within(2),
  async ({ webhooks, writes }) => {
    await using database = await createTestDatabase()
    await using stage = await setStage({ ...database, webhooks: 1, env: fewPlaces })
    const key = await addAccount(stage)
    const recorder = { ...stage.recorder, url: `${stage.recorder.url}/flood` }
    await subscribe({ url: stage.service.url, key, recorder, count: webhooks })

    let answered = 0
    await using flood = startLoad({
      ledger: stage.ledger,
      url: () => stage.service.url,
      key,
      operation: { path: '/v1/subscribers', body: (email) => ({ email }), status: 201 },
      writers: floodWriters,
      paceMs: 0,
      onAcknowledged: () => {
        answered += 1
      },
    })
    await flood.acknowledged(100)
    const answeredUntil: number[] = []
    await using load = stage.startLoad({
      writers: 1,
      paceMs: 0,
      onAcknowledged: () => answeredUntil.push(answered),
    })
    await load.acknowledged(writes)
    await load.stop()
    await flood.stop()
    const answeredDuring = answeredUntil.slice(1).map((count, index) => count - (answeredUntil[index] ?? 0))
    expect(median(answeredDuring)).toBeLessThan(answeredBefore)
    expect(await stage.verdict()).toEqual([])
  },
)

/** Another account, which may send as much as the one of the stage. Returns its key. */
async function addAccount({ db }: Stage): Promise<string> {
  const { accounts, apiKeys } = createKeyServices()
  const { id } = await accounts.create(db, { name: 'Flood', plan: 'scale' })
  const { key } = await apiKeys.create(db, {
    accountId: id,
    mode: 'live',
    permissions: ['full_access'],
    name: 'A key',
  })
  return key
}

/** Too few for the flood: its deliveries pile up. */
const fewPlaces = { DELIVERY_PLACES: '16', ENDPOINT_MAX_IN_FLIGHT: '16' }

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
