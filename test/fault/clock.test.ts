import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { eventType } from '../../contract/event-types.ts'
import { contract } from '../../contract/index.ts'
import { createRetention } from '../../server/background/retention.ts'
import { firstIdAt } from '../../server/shared/ids.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { answer, type Behaviour, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService, type TestServiceOptions } from '../support/service.ts'
import { keepBooks } from './support/books.ts'
import { rounds } from './support/rounds.ts'

/*
 * Clocks that are set. Where the database is on the same machine its clock moves along; where it is not,
 * that of the process moves alone.
 */

const hour = 3_600_000
const day = 24 * hour
const allShifts = [
  { what: 'of the machine is set back an hour', ms: -hour, withDatabase: true },
  { what: 'of the machine is set forward a day', ms: day, withDatabase: true },
  { what: 'of the process alone is set forward a day', ms: day, withDatabase: false },
  { what: 'of the process alone is set back an hour', ms: -hour, withDatabase: false },
]
const shifts = allShifts.slice(0, rounds({ short: 2, long: allShifts.length }))
type Shift = (typeof shifts)[number]

let count = 0

/** Time of which the part that the process reads can be set apart from the database's. */
function createShiftingTime(): { time: TestTime; shift(how: Shift): Promise<void> } {
  const all = createTestTime()
  let offsetMs = 0
  return {
    time: { ...all, clock: { now: () => new Date(all.clock.now().getTime() + offsetMs) } },
    async shift({ ms, withDatabase }) {
      if (withDatabase) await all.advance(ms)
      else offsetMs += ms
    },
  }
}

/** A service in such time. */
async function setStage(options: Partial<TestServiceOptions> = {}) {
  const { time, shift } = createShiftingTime()
  const service = await startTestService({ time, ...options })
  return { time, shift, service }
}

/** An endpoint with its webhook, until the end of the test. */
async function subscribe({ client }: TestService) {
  const receiver = await startReceiver()
  const { id } = await client.succeed(contract.webhooks.create, {
    body: { url: receiver.url, events: ['subscriber.added'] },
  })
  onTestFinished(async () => {
    await client.succeed(contract.webhooks.delete, { params: { id } })
    await receiver.stop()
  })
  return { receiver, webhookId: id }
}

async function add({ client }: TestService, people: number): Promise<void> {
  for (let index = 0; index < people; index++) {
    await client.succeed(contract.subscribers.create, { body: { email: `person${++count}@example.com` } })
  }
}

const deliveriesOf = async ({ client }: TestService, id: string) =>
  (await client.succeed(contract.deliveries.list, { params: { id }, query: { limit: 100 } })).data

/** Creates a client that always asks for the events after the last one it saw. */
function createPoller({ client }: TestService) {
  const seen: string[] = []
  return {
    seen,
    async look(): Promise<number> {
      for (;;) {
        const after = seen.at(-1)
        const query = { order: 'asc' as const, limit: 3, ...(after === undefined ? {} : { after }) }
        const { data } = await client.succeed(contract.events.list, { query })
        if (data.length === 0) return seen.length
        seen.push(...data.map(({ id }) => String(id)))
      }
    },
  }
}

/** Keeps the requests of an endpoint until it is told how to answer them. */
function held(): { behaviour: Behaviour; release(): void } {
  const waiting: (() => void)[] = []
  return {
    behaviour: (exchange) => void waiting.push(() => answer(200)(exchange)),
    release: () => {
      for (const respond of waiting.splice(0)) respond()
    },
  }
}

test.each(shifts)('everything is delivered, once, also what was in flight when the clock $what', async (how) => {
  const { time, shift, service } = await setStage()
  onTestFinished(() => service.stop())
  await using books = await keepBooks(service, time)
  const hold = held()
  books.recorder.respond(hold.behaviour)
  await using load = books.startLoad(service)
  await books.recorder.received(4)
  await shift(how)
  await load.acknowledged(20)
  await load.stop()
  // Long enough for a claim to lapse that nobody keeps alive.
  await time.advance(60_000)
  await time.advance(60_000)
  books.recorder.respond(answer(200))
  hold.release()
  expect(await books.verdict()).toEqual([])
})

describe.each(shifts)('when the clock $what', (how) => {
  let time: TestTime
  let service: TestService
  let shift: (how: Shift) => Promise<void>

  beforeAll(async () => {
    ;({ time, shift, service } = await setStage())
  })
  afterAll(() => service?.stop())
  // It is set right again, which is one jump more.
  afterEach(() => shift({ ...how, ms: -how.ms }))

  test('whoever polls from the last event they saw misses none and gets none twice', async () => {
    const poller = createPoller(service)
    await add(service, 3)
    const { data } = await service.client.succeed(contract.events.list, { query: { limit: 100 } })
    await expect.poll(() => poller.look()).toBe(data.length)
    await shift(how)
    await add(service, 5)
    await expect.poll(() => poller.look()).toBe(data.length + 5)
    await shift({ ...how, ms: -how.ms })
    await add(service, 5)
    await expect.poll(() => poller.look()).toBe(data.length + 10)
    expect(poller.seen.toSorted()).toEqual(poller.seen)
    expect(new Set(poller.seen).size).toBe(data.length + 10)
    await shift(how)
  })

  test('a retry waits for its time as the database tells it, and is made once', async () => {
    const { receiver, webhookId } = await subscribe(service)
    receiver.respondOnce(answer(500))
    await add(service, 1)
    await expect.poll(() => deliveriesOf(service, webhookId)).toMatchObject([{ attemptCount: 1, status: 'pending' }])
    await shift(how)
    const leftMs = 60_000 - (how.withDatabase ? how.ms : 0)
    if (leftMs > 0) {
      await time.advance(leftMs - 2_000)
      await add(service, 1)
      await expect.poll(async () => (await deliveriesOf(service, webhookId))[0]?.status).toBe('succeeded')
      expect(receiver.requests).toHaveLength(2)
      await time.advance(3_000)
    } else await add(service, 1)
    await receiver.received(3)
    await expect
      .poll(async () =>
        (await deliveriesOf(service, webhookId)).map(({ status, attemptCount }) => [status, attemptCount]),
      )
      .toEqual([
        ['succeeded', 1],
        ['succeeded', 2],
      ])
  })

  test('what is signed says the time of the process', async () => {
    const { receiver } = await subscribe(service)
    await shift(how)
    await add(service, 1)
    const [request] = await receiver.received(1)
    expect(Number(request?.headers['webhook-timestamp'])).toBe(Math.floor(time.clock.now().getTime() / 1000))
  })

  test('an account has its limit in each minute of the clock, and is let in again with the next', async () => {
    const client = service.client.as(service.keys.limited)
    const ask = () => client.send('GET', '/v1/event-types')
    expect(await ask()).toMatchObject({ status: 200 })
    expect(await ask()).toMatchObject({ status: 429 })
    await shift(how)
    const { status, headers } = await ask()
    expect(status).toBe(200)
    const untilReset = Number(headers['x-ratelimit-reset']) - time.clock.now().getTime() / 1000
    expect(untilReset).toBeGreaterThan(0)
    expect(untilReset).toBeLessThanOrEqual(60)
    expect(await ask()).toMatchObject({ status: 429 })
    await time.advance(60_000)
    expect(await ask()).toMatchObject({ status: 200 })
  })

  test('the service is ready, and its workers are alive', async () => {
    await shift(how)
    expect(await service.client.send('GET', '/readyz')).toMatchObject({ status: 200 })
  })
})

describe('what is kept for a time of the clock', () => {
  const back = { what: '', ms: -hour, withDatabase: true }
  const forward = { what: '', ms: day + hour, withDatabase: true }
  let time: TestTime
  let service: TestService
  let shift: (how: Shift) => Promise<void>

  beforeAll(async () => {
    ;({ time, shift, service } = await setStage())
  })
  afterAll(() => service?.stop())

  test('an event is deleted a day early when the clock is a day ahead, and no other', async () => {
    const daysAgo = (days: number) => new Date(time.clock.now().getTime() - days * day)
    const [old, young] = [await insertEvent(service, daysAgo(29.5)), await insertEvent(service, daysAgo(28.5))]
    const expire = createRetention({ db: service.database.db, clock: time.clock, retentionMs: 30 * day })
    await shift(back)
    await expire()
    await shift(forward)
    await expire()
    await shift({ ...back, ms: -day })
    await expire()
    const rows = await service.database.db.selectFrom('events').select('id').where('id', 'in', [old, young]).execute()
    expect(rows).toEqual([{ id: young }])
  })

  test('an answer is replayed when the clock was set back, and forgotten a day on', async () => {
    const create = () =>
      service.client.send('POST', '/v1/audiences', { json: { name: 'List' }, idempotencyKey: 'once' })
    const first = await create()
    await shift(back)
    expect((await create()).text).toBe(first.text)
    await shift(forward)
    expect((await create()).text).not.toBe(first.text)
  })

  test('the old secret signs beside the new one when the clock was set back, and not a day on', async () => {
    const { receiver, webhookId } = await subscribe(service)
    const signatures = async () => {
      const before = receiver.requests.length
      await add(service, 1)
      const requests = await receiver.received(before + 1)
      return requests.at(-1)?.headers['webhook-signature']?.split(' ').length
    }
    await service.client.succeed(contract.webhooks.rotateSecret, { params: { id: webhookId }, body: {} })
    expect(await signatures()).toBe(2)
    await shift(back)
    expect(await signatures()).toBe(2)
    await shift(forward)
    expect(await signatures()).toBe(1)
  })
})

/** An event of a process that is gone: none of the identifiers made here is above it. */
async function insertEvent({ accountId, database }: TestService, at: Date): Promise<string> {
  const id = firstIdAt('event', at)
  const { exampleBody } = eventType('subscriber.removed')
  const body = JSON.stringify({ ...exampleBody, id, created: at.toISOString() })
  await database.db
    .insertInto('events')
    .values({ id, account_id: accountId, type: 'subscriber.removed', body, sample: false, created_at: at })
    .execute()
  return id
}

test('a restart after the clock was set back makes no event that stands before those that were seen', async () => {
  const { time, service } = await setStage({ roles: { worker: false } })
  onTestFinished(() => service.stop())
  const poller = createPoller(service)
  const id = await insertEvent(service, new Date(time.clock.now().getTime() + 2 * day))
  await service.database.db
    .insertInto('outbox_rows')
    .values({ event_id: id, account_id: service.accountId, type: 'subscriber.removed' })
    .execute()
  await expect.poll(() => poller.look()).toBe(1)
  const started = await startTestService({
    beside: service,
    time,
    roles: { worker: false },
    publicUrl: 'https://mail.example.test',
  })
  onTestFinished(() => started.stop())
  await add(started, 3)
  await expect.poll(() => poller.look()).toBe(4)
  expect(started.logged.map((line) => JSON.parse(line).msg)).toEqual([
    expect.stringMatching(/^the newest event is of a later time than now/),
  ])
})
