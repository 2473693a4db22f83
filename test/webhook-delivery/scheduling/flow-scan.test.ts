import { afterEach, beforeEach, expect, test } from 'vitest'
import { inTransaction } from '../../../server/database/connection.ts'
import { firstFlow } from '../../../server/queue/flow-jobs.ts'
import type { Queue } from '../../../server/queue/queue.ts'
import { newId } from '../../../server/shared/ids.ts'
import { type FlowScan, startFlowScan } from '../../../server/webhook-delivery/scheduling/flow-scan.ts'
import { createScheduler, defaultSettings } from '../../../server/webhook-delivery/scheduling/scheduler.ts'
import type { TestDatabase } from '../../support/database.ts'
import { startTestQueue } from '../../support/queue.ts'

/** More than one look takes in. */
const flows = 1_500

let database: TestDatabase
let queue: Queue
let stop: () => Promise<void>

beforeEach(async () => {
  ;({ database, queue, stop } = await startTestQueue())
  const inADay = new Date(Date.now() + 86_400_000)
  await put(Array.from({ length: flows }, (_, index) => ({ flow: firstFlow + index, dueAt: inADay })))
})
afterEach(() => stop())

async function put(jobs: readonly { flow: number; dueAt: Date | null }[]): Promise<void> {
  const all = jobs.map((job) => ({ ...job, deliveryId: newId('delivery', new Date()) }))
  await inTransaction(database.db, (trx) => queue.flows.put(trx, all))
}

/** Walks until so many looks have ended. Returns the flows that were found to have work, in their order. */
async function walk(looks: number, afterEach: (walk: FlowScan) => Promise<void>): Promise<(string | undefined)[]> {
  const scheduler = createScheduler(defaultSettings)
  const found: (string | undefined)[] = []
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let ended = 0
  const walking = startFlowScan({
    queue,
    scheduler,
    // Only who wakes it has it look.
    intervalMs: 3_600_000,
    onError: reject,
    onFound() {
      for (let request = scheduler.next(); request !== null; request = scheduler.next()) found.push(request.flow)
      ended += 1
      if (ended === looks) resolve()
      else afterEach(walking).catch(reject)
    },
  })
  await promise
  await walking.stop()
  return found
}

test('a scan of flows finds every flow with work, however often it is woken', async () => {
  await put([{ flow: firstFlow + flows, dueAt: null }])
  expect(await walk(2, async (walking) => walking.wake())).toEqual([String(firstFlow + flows)])
})

test('a scan of flows begins anew when it has been through all', async () => {
  await put([
    { flow: firstFlow - 1 + flows, dueAt: null },
    { flow: firstFlow, dueAt: null },
  ])
  const first = String(firstFlow)
  const last = String(firstFlow - 1 + flows)
  expect(await walk(3, async (walking) => walking.wake())).toEqual([first, last, first])
})

test('a scan of flows looks first at the flow it is woken for, and at no other for it', async () => {
  const last = firstFlow - 1 + flows
  let isPut = false
  const found = await walk(2, async (walking) => {
    if (isPut) return
    isPut = true
    await put([
      { flow: last, dueAt: null },
      { flow: last - 1, dueAt: null },
    ])
    walking.wake(last)
  })
  expect(found[0]).toBe(String(last))
})
