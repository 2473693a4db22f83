import type { Tracer } from './tracer.ts'

/** An event of the outbox, as a trace names it. */
export type EventName = { id: string; type: string }

/** Notes in what is being done that it appends events. Answers the `traceparent` to keep with them, or null. */
export function traceEvents(tracer: Tracer, events: readonly EventName[]): string | null {
  const span = tracer.current()
  if (span.traceparent === null) return null
  for (const { id, type } of events) {
    span.note('event appended', { 'postern.event.id': id, 'postern.event.type': type })
  }
  return span.traceparent
}
