import type { ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { contract } from '../../contract/index.ts'
import { createApiKeyService } from '../../server/api-keys/service.ts'
import { systemClock } from '../../server/clock.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { newId } from '../../server/ids.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { fanOutBatch } from '../../server/outbox/fan-out.ts'
import type { Queue } from '../../server/queue/queue.ts'
import { createTurns } from '../../server/queue/turns.ts'
import { createTestTime, stopMonotonicClock } from '../support/clock.ts'
import { createTestDatabase } from '../support/database.ts'
import { startOwnWorker } from '../support/delivery-worker.ts'
import { type Engine, startEngine } from '../support/engine.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { live } from '../support/scope.ts'
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

    const neighbour = await addNeighbour(engine, other.url)
    await neighbour.emit(1)

    let floodedBefore = Number.POSITIVE_INFINITY
    other.respond(({ response }) => {
      floodedBefore = flooded.requests.length
      response.end()
    })
    await engine.startWorkers()
    await other.received(1)
    expect(floodedBefore).toBeLessThan(flood / 2)
  })

  describe.each([1, 20])('to %i webhooks, whose endpoints answer when the test says so', (webhooks) => {
    it('leaves the next free place to each delivery of another account', within(1), async () => {
      await using scene = await setScene(webhooks)
      const { engine, other, begun } = scene
      for (let round = 1; round <= rounds({ short: 20, long: 200 }); round++) {
        await engine.advance(roundSeconds)
        await engine.emit(floodEachRound / webhooks)
        const eventIds = await scene.neighbour.emit(1)
        await scene.fanOut()
        await scene.takenInHand(eventIds)
        const before = begun.length
        await scene.freeOnePlace()
        expect(begun.slice(before)).toEqual(['other'])
        await scene.freeOnePlace(other)
      }
    })

    it('leaves half of the places to another account that has as much to deliver', within(1), async () => {
      await using scene = await setScene(webhooks)
      const { engine, begun } = scene
      await engine.advance(roundSeconds)
      const eventIds = await scene.neighbour.emit(freshPlaces)
      await scene.fanOut()
      await scene.takenInHand(eventIds)
      const before = begun.length
      for (let freed = 1; freed <= freshPlaces; freed++) await scene.freeOnePlace()
      // None of the other account's has ended: its requests are the places it has.
      const half = freshPlaces / 2
      expect(begun.slice(before)).toEqual([...Array(half).fill('other'), ...Array(half).fill('flood')])
    })
  })
})

/** Of the flood. More than anybody has turns for. */
const [floodEachRound, roundSeconds] = [160, 0.25]
/** Requests in flight at once in a worker; the rest is for retries and slow webhooks. */
const [concurrency, freshPlaces] = [16, 12]

type Scene = AsyncDisposable & {
  engine: Engine
  other: Holder
  neighbour: Neighbour
  /** Whose requests have begun, in their order. */
  begun: readonly ('flood' | 'other')[]
  /** Fans out all that is in the outbox, as the process of the worker does. */
  fanOut(): Promise<void>
  /**
   * Resolves when the worker has claimed or keeps all deliveries of these events. Nothing else moves meanwhile: their
   * turn has to come before all of the flood that waits in the queue.
   */
  takenInHand(eventIds: readonly string[]): Promise<void>
  /** Ends one request, and waits until the next one has begun in its place. Default: one of the flood. */
  freeOnePlace(of?: Holder): Promise<void>
}

/** A worker with all its places taken by a flood that also fills the queue, and a webhook of another account. */
async function setScene(webhooks: number): Promise<Scene> {
  stopMonotonicClock()
  await using starting = new AsyncDisposableStack()
  const begun: ('flood' | 'other')[] = []
  let onBegun = () => {}
  function nextBegins(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    onBegun = resolve
    return promise
  }
  function begin(whose: 'flood' | 'other'): void {
    begun.push(whose)
    onBegun()
  }
  const flooded = starting.use(await startHolder(() => begin('flood')))
  const other = starting.use(await startHolder(() => begin('other')))
  const engine = starting.use(await startEngine())
  const turns = createTurns()
  const watched = watchClaims(engine)
  const worker = starting.use(
    await startOwnWorker(watched.engine, { turns, concurrency, webhookConcurrency: concurrency }),
  )
  for (let count = 0; count < webhooks; count++) await engine.addWebhook(flooded.url)
  const neighbour = await addNeighbour(engine, other.url)

  async function fanOut(): Promise<void> {
    for (let isFull = true; isFull; ) {
      using room = await worker.offerRoom(false)
      const done = await fanOutBatch({ ...engine, turns, room })
      await room.fill(done.kept)
      worker.wake()
      isFull = done.isFull
    }
  }

  async function countInHand(eventIds: readonly string[]): Promise<number> {
    const { db, queue } = engine
    const rows = await db.selectFrom('deliveries').select('id').where('event_id', 'in', eventIds).execute()
    const ids = rows.map(({ id }) => id)
    return (await queue.claimed(db, ids)).size
  }

  await engine.emit((10 * floodEachRound) / webhooks)
  await fanOut()
  await flooded.received(freshPlaces)
  const running = starting.move()
  return {
    engine,
    other,
    neighbour,
    begun,
    fanOut,
    async takenInHand(eventIds) {
      await expect.poll(() => countInHand(eventIds)).toBe(eventIds.length)
      await watched.rest()
    },
    async freeOnePlace(of = flooded) {
      const next = nextBegins()
      of.endOldest()
      await next
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/**
 * Watches what a worker asks of the queue and of the database. `rest` resolves at a moment in which nothing is under
 * way: what was claimed before has been read, and waits in the worker.
 */
function watchClaims(engine: Engine): { engine: Engine; rest(): Promise<void> } {
  const underWay = new Set<unknown>()
  const db = engine.db.withPlugin({
    transformQuery({ queryId, node }) {
      underWay.add(queryId)
      return node
    },
    async transformResult({ queryId, result }) {
      underWay.delete(queryId)
      return result
    },
  })
  const { queue } = engine
  async function claim(...args: Parameters<Queue['claim']>): ReturnType<Queue['claim']> {
    underWay.add(args)
    return queue.claim(...args).finally(() => underWay.delete(args))
  }
  return {
    engine: { ...engine, workers: engine.workers, db, queue: { ...queue, claim } },
    async rest() {
      do await nextTurn()
      while (underWay.size > 0)
    },
  }
}

/** A receiver whose requests stay in flight until the test ends them. */
type Holder = Receiver & {
  /** Answers the oldest request that is in flight. */
  endOldest(): void
}

async function startHolder(onRequest: () => void): Promise<Holder> {
  const receiver = await startReceiver()
  const inFlight: ServerResponse[] = []
  receiver.respond(({ response }) => {
    inFlight.push(response)
    onRequest()
  })
  return { ...receiver, endOldest: () => inFlight.shift()?.end() }
}

/** Another account with one webhook. */
type Neighbour = {
  /** Commits events for it and returns their ids. */
  emit(count: number): Promise<string[]>
}

async function addNeighbour(engine: Engine, url: string): Promise<Neighbour> {
  const accountId = newId('account', engine.clock.now())
  await engine.db.insertInto('accounts').values({ id: accountId, name: 'Other', plan: 'scale' }).execute()
  const webhookId = await engine.addWebhook(url, ['contact.created'])
  await engine.db.updateTable('webhooks').set({ account_id: accountId }).where('id', '=', webhookId).execute()
  const outbox = createOutbox({ clock: engine.clock, wake: () => undefined })
  const data = {
    subscriberId: newId('subscriber', engine.clock.now()),
    audienceId: newId('audience', engine.clock.now()),
    email: 'ada@example.com',
    status: 'active' as const,
  }
  return {
    emit(count) {
      const events = Array.from({ length: count }, () => ({ type: 'contact.created' as const, data }))
      return inTransaction(engine.db, (trx) => outbox.append(trx, live(accountId), events))
    },
  }
}

describe('an account that floods within a large limit of its own', () => {
  const floodWriters = 8
  /** Requests of the flood that are answered during one of another account. All of the writers are first, some twice. */
  const answeredBefore = 3 * floodWriters

  it.each([
    { webhooks: 1, writes: rounds({ short: 60, long: 600 }) },
    // What the flood leaves behind has to be delivered in the end, over few places: 20 for each of its writes.
    { webhooks: 20, writes: rounds({ short: 30, long: 180 }) },
  ])(
    'has the requests of others wait for few of its own, and loses nothing, beside $webhooks webhooks',
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
})

/** Another account, which may send as much as the one of the stage. Returns its key. */
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

/** Too few for the flood: its deliveries pile up. */
const fewPlaces = { DELIVERY_CONCURRENCY: '16', WEBHOOK_CONCURRENCY: '16' }

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
