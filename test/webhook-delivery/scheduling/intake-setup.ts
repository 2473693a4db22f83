import { vi } from 'vitest'
import { createIntakes, type EventKind, type Reservation } from '../../../server/webhook-delivery/scheduling/intake.ts'
import { createScheduler, defaultSettings } from '../../../server/webhook-delivery/scheduling/scheduler.ts'
import type { FlowName } from '../../../server/webhook-delivery/scheduling/scheduler-types.ts'
import type { LeasedEvent } from '../../../server/webhook-delivery/settlement/leased-event.ts'

/* Intakes with a scheduler, and flows and events of two accounts. */

export const flow: FlowName = { flow: '1', account: 'a', host: 'h' }
export const other: FlowName = { flow: '2', account: 'b', host: 'h' }

export function setUp() {
  const scheduler = createScheduler(defaultSettings)
  const take = vi.fn<(events: readonly LeasedEvent[]) => void>()
  return { scheduler, take, intakes: createIntakes({ scheduler, take }) }
}

/** Makes a flow answer quickly: it may then have over a hundred deliveries in hand. */
export function quicken(scheduler: ReturnType<typeof setUp>['scheduler'], name: FlowName): void {
  scheduler.offer(name, 1)
  const request = scheduler.next()
  if (request === null) throw new Error('nothing may start')
  scheduler.begin(request, 0)
  scheduler.end(request, { kind: 'answered', latencyMs: 1 })
  scheduler.free(request)
}

/** Makes a flow hang: none of its requests is answered. */
export function stall(scheduler: ReturnType<typeof setUp>['scheduler'], name: FlowName): void {
  scheduler.offer(name, 1)
  const request = scheduler.next()
  if (request === null) throw new Error('nothing may start')
  scheduler.begin(request, 0)
  scheduler.elapse(60_000)
}

/** An event with a delivery for each flow. */
export function eventOf(...names: FlowName[]): LeasedEvent {
  const deliveries = names.map(({ flow: number, account, host }) => ({
    accountId: account,
    webhook: { flow: Number(number), host },
  }))
  return { id: 'evt_1', type: 'contact.deleted', createdAt: new Date(0), deliveries: deliveries as never }
}

/** The kind of the events of a flow. */
export function kindOf({ account }: FlowName): EventKind {
  return { accountId: account, mode: 'live', type: 'contact.deleted' }
}

/** A kind of the same account whose events are for others too. */
export const ofBoth: EventKind = { accountId: 'a', mode: 'live', type: 'contact.created' }

/** Reserves all there is room for. Returns how many. */
export function fill(intake: Reservation, name: FlowName): number {
  let count = 0
  while (intake.destinationOf(kindOf(name), [name]) === 'hand') count += 1
  return count
}

export const atEnd = { leased: [], looked: { from: 'front', isAll: true }, rest: false } as const
