import { expect, test } from 'vitest'
import { createScheduler, defaultSettings } from '../../../server/webhook-delivery/scheduling/scheduler.ts'
import type { FlowName, Request } from '../../../server/webhook-delivery/scheduling/scheduler-types.ts'
import { watchSilences } from '../../../server/webhook-delivery/scheduling/silence-timer.ts'

const slow: FlowName = { flow: '1', account: 'a', host: 'slow' }
const hung: FlowName = { flow: '2', account: 'b', host: 'hung' }

function setUp() {
  const scheduler = createScheduler(defaultSettings)
  const silences = watchSilences({ scheduler, onNoted: () => silences.watch() })
  return {
    scheduler,
    silences,
    /** Begins a request that has been in flight for so long. */
    begin(of: FlowName, forMs: number): Request {
      scheduler.offer(of, 1)
      const request = scheduler.next()
      if (request === null) throw new Error('nothing may start')
      scheduler.begin(request, performance.now() - forMs)
      silences.watch()
      return request
    },
  }
}

test('the timer of silence notes a request in its time, also when it began after one that may be silent for longer', async () => {
  const { scheduler, silences, begin } = setUp()
  scheduler.end(begin(slow, 0), { kind: 'answered', latencyMs: 20_000 })
  scheduler.elapse(performance.now() + 10_000)
  silences.stop()
  const [patient, other] = [begin(slow, 0), begin(hung, 1_990)]
  await expect.poll(() => other.state).toBe('silent')
  expect(patient.state).toBe('running')
  silences.stop()
})

test('the timer of silence notes one after the other, and waits for nothing when none is in flight', async () => {
  const { begin, scheduler } = setUp()
  const [first, second] = [begin(hung, 1_990), begin(slow, 1_950)]
  await expect.poll(() => [first.state, second.state]).toEqual(['silent', 'silent'])
  expect(scheduler.nextSilence()).toBeUndefined()
})
