import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { firstFlow } from '../../server/queue/flow-jobs.ts'
import { createScheduler, defaultSettings } from '../../server/webhook-delivery/scheduling/scheduler.ts'
import type { FlowName, Scheduler } from '../../server/webhook-delivery/scheduling/scheduler-types.ts'
import { startStatistics } from '../../server/webhook-delivery/statistics.ts'
import type { TestDatabase } from '../support/database.ts'
import { startTestQueue } from '../support/queue.ts'

function nameOf(number: number): FlowName {
  return { flow: String(firstFlow + number), account: `account ${number % 7}`, host: `host ${number}` }
}

/** The flows of a walk, to its end. */
function flowsOf(views: ReturnType<Scheduler['views']>): string[] {
  const flows: string[] = []
  for (let next = views.next(); next.done !== true; next = views.next()) flows.push(next.value.name.flow)
  return flows
}

function schedulerWith(count: number): Scheduler {
  const scheduler = createScheduler(defaultSettings)
  for (let number = 0; number < count; number++) scheduler.offer(nameOf(number), 1)
  return scheduler
}

test('views of a scheduler are of each flow once, as it is when it is asked for', () => {
  const scheduler = schedulerWith(3)
  const views = scheduler.views()
  expect(views.next().value).toMatchObject({ name: nameOf(0), waiting: 1, held: 0, waitsFor: 'turn' })
  scheduler.offer(nameOf(1), 4)
  expect(views.next().value).toMatchObject({ name: nameOf(1), waiting: 5 })
  expect(flowsOf(views)).toEqual([nameOf(2).flow])
  expect(flowsOf(scheduler.views())).toEqual([0, 1, 2].map((number) => nameOf(number).flow))
})

test('views of a scheduler are gone on with after flows were forgotten and added', () => {
  const scheduler = schedulerWith(4)
  const views = scheduler.views()
  views.next()
  for (const number of [0, 2]) scheduler.drained(nameOf(number).flow, 1)
  scheduler.forgetIdle(1)
  scheduler.offer(nameOf(9), 1)
  expect(flowsOf(views)).toEqual([1, 3, 9].map((number) => nameOf(number).flow))
})

describe('states of flows', () => {
  let database: TestDatabase
  let stop: () => Promise<void>

  beforeEach(async () => {
    ;({ database, stop } = await startTestQueue())
  })
  afterEach(() => stop())

  /** Has a scheduler's states told again and again, until the test of what is there passes. */
  async function told(scheduler: Scheduler, process = randomUUID()): Promise<AsyncDisposable> {
    const errors: unknown[] = []
    const states = startStatistics({
      db: database.db,
      scheduler,
      process,
      intervalMs: 20,
      onError: (error) => errors.push(error),
    })
    return {
      async [Symbol.asyncDispose]() {
        await states.stop(performance.now() + 1_000)
        expect(errors).toEqual([])
      },
    }
  }

  const rows = () => database.db.selectFrom('flow_states').selectAll().orderBy('flow').execute()

  test('states of flows say what each flow waits for, and are told by each process for itself', async () => {
    const scheduler = createScheduler({ ...defaultSettings, places: 5, hostMax: 1 })
    scheduler.offer(nameOf(0), 9)
    scheduler.next()
    await using _ = await told(scheduler)
    const state = { flow: firstFlow, max_in_flight: 4, in_flight: 1, waits_for: 'endpoint_limit' }
    await expect.poll(rows).toEqual([expect.objectContaining(state)])
    const other = schedulerWith(1)
    await using __ = await told(other)
    await expect
      .poll(async () => (await rows()).map(({ waits_for }) => waits_for).toSorted())
      .toEqual(['claim', 'endpoint_limit'])
    for (let request = other.next(); request !== null; request = other.next()) other.free(request)
    await expect.poll(async () => (await rows()).map(({ waits_for }) => waits_for)).toContain(null)
  })

  test('states of flows say that the share of the account is used up', async () => {
    const scheduler = createScheduler({ ...defaultSettings, places: 1, alpha: 1 })
    scheduler.offer(nameOf(0), 1)
    scheduler.offer(nameOf(7), 1)
    scheduler.next()
    await using _ = await told(scheduler)
    await expect.poll(async () => (await rows()).map(({ waits_for }) => waits_for)).toEqual([null, 'account_share'])
  })

  test('states of flows are told in turns where there are many flows, and taken back when the process ends', async () => {
    const other = await told(schedulerWith(1))
    const process = await told(schedulerWith(2_500))
    await expect.poll(async () => (await rows()).length).toBe(2_501)
    await process[Symbol.asyncDispose]()
    expect(await rows()).toHaveLength(1)
    await other[Symbol.asyncDispose]()
  })
})
