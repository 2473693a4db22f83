import { describe, expect, test, vi } from 'vitest'
import { createIntakes } from '../../server/delivery/intake.ts'
import type { Claim } from '../../server/delivery/load.ts'
import { initialLimit } from '../../server/delivery/scheduling/flow-limit.ts'
import { createScheduler, defaultSettings } from '../../server/delivery/scheduling/scheduler.ts'
import type { FlowName } from '../../server/delivery/scheduling/scheduler-types.ts'

const flow: FlowName = { flow: '1', account: 'a', host: 'h' }
const other: FlowName = { flow: '2', account: 'b', host: 'h' }

function setUp() {
  const scheduler = createScheduler(defaultSettings)
  const take = vi.fn<(claims: readonly Claim[]) => void>()
  const handBack = vi.fn(async () => undefined)
  return { scheduler, take, handBack, intakes: createIntakes({ scheduler, take, handBack }) }
}

/** Has a flow answer quickly, so that it takes a hundred in hand and more. */
function quicken(scheduler: ReturnType<typeof setUp>['scheduler'], name: FlowName): void {
  scheduler.offer(name, 1)
  const request = scheduler.next()
  if (request === null) throw new Error('nothing may start')
  scheduler.begin(request, 0)
  scheduler.end(request, { kind: 'answered', latencyMs: 1 })
  scheduler.free(request)
}

/** Reserves all there is room for. Returns how many. */
function fill(intake: Awaited<ReturnType<ReturnType<typeof setUp>['intakes']['open']>>, name: FlowName): number {
  let count = 0
  for (; intake.destinationOf(name) === 'hand'; count++) intake.reserve(name)
  return count
}

describe('an intake', () => {
  test('has room for as many of a flow as are likely to start soon, and less for the next until it is disposed of', async () => {
    const { intakes } = setUp()
    {
      using intake = await intakes.open(false)
      expect(fill(intake, flow)).toBe(initialLimit)
      using next = await intakes.open(false)
      expect(fill(next, flow)).toBe(0)
      expect(fill(next, other)).toBe(initialLimit)
    }
    using intake = await intakes.open(false)
    expect(fill(intake, flow)).toBe(initialLimit)
  })

  test('puts into the queue what is of a flow that nothing is known of, and leaves for later what is of a quick one', async () => {
    const { scheduler, intakes } = setUp()
    quicken(scheduler, flow)
    using intake = await intakes.open(false)
    fill(intake, flow)
    fill(intake, other)
    expect(intake.destinationOf(flow)).toBe('later')
    expect(intake.destinationOf(other)).toBe('queue')
  })

  test('waits for what it left for later, and puts it into the queue when that was in vain', async () => {
    const { scheduler, intakes } = setUp()
    quicken(scheduler, flow)
    using first = await intakes.open(false)
    fill(first, flow)
    expect(first.destinationOf(flow)).toBe('later')
    // Nobody starts anything: it answers after its patience.
    using second = await intakes.open(true)
    expect(second.destinationOf(flow)).toBe('queue')
  })

  test('goes on as soon as there is room', async () => {
    const { scheduler, intakes } = setUp()
    quicken(scheduler, flow)
    const first = await intakes.open(false)
    fill(first, flow)
    first.destinationOf(flow)
    const waiting = intakes.open(true)
    first[Symbol.dispose]()
    intakes.wake()
    using second = await waiting
    expect(second.destinationOf(flow)).toBe('hand')
  })

  test('hands back what comes after it was closed, and takes nothing more', async () => {
    const { intakes, take, handBack } = setUp()
    using intake = await intakes.open(false)
    intake.reserve(flow)
    intakes.close()
    expect(intake.destinationOf(flow)).toBe('queue')
    await intake.fill([])
    expect(take).not.toHaveBeenCalled()
    expect(handBack).toHaveBeenCalledOnce()
  })
})
