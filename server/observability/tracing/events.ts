import type { Tracer } from './tracer.ts'

/** An event of the outbox, as it appears in traces. */
export type EventName = { id: string; type: string }

/** Adds the events to the current span. Returns the `traceparent` to store with them, or null without a span. */
export function traceEvents(tracer: Tracer, events: readonly EventName[]): string | null {
  const span = tracer.current()
  if (span.traceparent === null) return null
  for (const { id, type } of events) {
    span.note('event appended', { 'postern.event.id': id, 'postern.event.type': type })
  }
  return span.traceparent
}
