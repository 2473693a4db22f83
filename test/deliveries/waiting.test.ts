import { expect, test } from 'vitest'
import { type WaitingDelivery, waitOf } from '../../server/deliveries/waiting.ts'

const [at, later] = [new Date('2026-03-01T09:30:00.000Z'), new Date('2026-03-01T09:31:00.000Z')]

/** One that is due and not claimed. */
function due(waits: WaitingDelivery['waits']): WaitingDelivery {
  return {
    id: 'dlv_1',
    event_id: 'evt_1',
    event_type: 'contact.deleted',
    status: 'pending',
    attempt_count: 1,
    next_attempt_at: later,
    created_at: at,
    completed_at: null,
    sample: false,
    mode: 'live',
    queued_at: at,
    claimed_at: at,
    is_due: true,
    due_since: later,
    job_claimed_at: null,
    waits,
  }
}

test.each([
  { waits: [], told: 'claim' },
  { waits: ['claim'], told: 'claim' },
  { waits: ['endpoint_limit'], told: 'endpoint_limit' },
  { waits: ['account_share'], told: 'account_share' },
  { waits: ['account_share', 'endpoint_limit'], told: 'endpoint_limit' },
  { waits: ['endpoint_limit', 'claim', 'account_share'], told: 'claim' },
] as const)('a delivery whose flow waits for $waits in the processes waits for $told', ({ waits, told }) => {
  expect(waitOf(due([...waits]))).toEqual({ queuedAt: later.toISOString(), claimedAt: null, waitingFor: told })
})

test('a claimed delivery waits for nothing, also where its time has not come by the clock of the database', () => {
  const claimed = { ...due(['endpoint_limit']), job_claimed_at: later }
  const told = { queuedAt: later.toISOString(), claimedAt: later.toISOString(), waitingFor: null }
  expect(waitOf(claimed)).toEqual(told)
  expect(waitOf({ ...claimed, is_due: false })).toEqual(told)
})

test('a delivery whose time has not come tells of its last attempt', () => {
  const told = { queuedAt: at.toISOString(), claimedAt: at.toISOString(), waitingFor: 'retry_schedule' }
  expect(waitOf({ ...due(['endpoint_limit']), is_due: false })).toEqual(told)
})

test.each(['succeeded', 'failed', 'canceled'] as const)('a delivery that has %s waits for nothing', (status) => {
  const ended = { ...due(['claim']), status, next_attempt_at: null, due_since: null, is_due: false }
  expect(waitOf(ended)).toEqual({ queuedAt: at.toISOString(), claimedAt: at.toISOString(), waitingFor: null })
})
