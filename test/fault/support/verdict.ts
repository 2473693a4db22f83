import type { Ledger } from './ledger.ts'
import type { Arrival } from './recorder.ts'

/** All that is known once the fault is over and the service had its time to recover. */
export type Evidence = {
  ledger: Ledger
  /** Every event in the database. `mark`: of the write that caused it. */
  events: readonly { id: string; accountId: string; type: string; mark: string; body: string }[]
  /** The webhooks that were subscribed from the first write on. */
  webhooks: readonly { id: string; accountId: string; path: string; types: readonly string[] }[]
  deliveries: readonly { id: string; webhookId: string; eventId: string; status: string; hasJob: boolean }[]
  /** Events that still await their fan-out. */
  outbox: readonly string[]
  arrivals: readonly Arrival[]
}

/**
 * Returns the faults in words. There are none when every committed event was delivered to every webhook
 * subscribed to it, no event that was rolled back was ever sent, duplicates come from lost claims alone,
 * and nothing is stuck.
 */
export function judge(evidence: Evidence): string[] {
  return [...wrongWrites(evidence), ...wrongRequests(evidence), ...wrongDeliveries(evidence), ...stuck(evidence)]
}

function* wrongWrites({ ledger, events }: Evidence): Generator<string> {
  const byMark = Map.groupBy(events, (event) => event.mark)
  const written = Map.groupBy(events, ({ mark, type }) => `${mark}, as ${type},`)
  for (const [mark, fate] of ledger.marks) {
    const count = byMark.get(mark)?.length ?? 0
    if (fate === 'acknowledged' && count === 0) yield `${mark} was acknowledged, and its event is lost`
    if (fate === 'rolled back' && count > 0) yield `${mark} was rolled back, and its event is there`
  }
  // One write may cause events of several types.
  for (const [what, { length }] of written) if (length > 1) yield `${what} was written ${length} times`
  for (const mark of byMark.keys()) if (!ledger.marks.has(mark)) yield `${mark} was written by nobody`
}

function* wrongRequests({ events, arrivals }: Evidence): Generator<string> {
  const bodies = new Map(events.map(({ id, body }) => [id, body]))
  for (const { eventId, body } of arrivals) {
    const committed = bodies.get(eventId)
    if (committed === undefined) yield `${eventId} was sent, and was never committed`
    else if (committed !== body) yield `${eventId} was sent with another body than was committed`
  }
}

function* wrongDeliveries({ ledger, events, webhooks, deliveries, arrivals }: Evidence): Generator<string> {
  const taken = Map.groupBy(
    arrivals.filter((arrival) => arrival.taken),
    ({ path, eventId }) => `${path} ${eventId}`,
  )
  const made = Map.groupBy(deliveries, ({ webhookId, eventId }) => `${webhookId} ${eventId}`)
  for (const webhook of webhooks) {
    for (const event of events) {
      if (event.accountId !== webhook.accountId || !webhook.types.includes(event.type)) continue
      const what = `${event.id} for ${webhook.id}`
      const rows = made.get(`${webhook.id} ${event.id}`) ?? []
      if (rows.length !== 1) yield `${what} has ${rows.length} deliveries`
      const times = taken.get(`${webhook.path} ${event.id}`)?.length ?? 0
      if (times === 0) yield `${what} was not delivered`
      const lost = rows.reduce((sum, row) => sum + ledger.lostClaimsOf(row.id), ledger.lostClaimsOf(event.id))
      if (times > 1 + lost) yield `${what} was delivered ${times} times, and ${lost} of its claims were lost`
    }
  }
}

function* stuck({ deliveries, outbox }: Evidence): Generator<string> {
  for (const id of outbox) yield `${id} was never fanned out`
  for (const { id, status, hasJob } of deliveries) {
    if (status === 'pending') yield hasJob ? `${id} is still pending` : `${id} is pending without a job`
    else if (status !== 'succeeded') yield `${id} is ${status}`
    else if (hasJob) yield `${id} has succeeded and still has a job`
  }
}
