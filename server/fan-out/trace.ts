import { sql } from 'kysely'
import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { noTracer, type Tracer } from '../observability/tracing/tracer.ts'

export type FanOutTraceOptions = { db: Db; clock: Clock; logger: Logger; tracer?: Tracer }

/**
 * Records a fan-out, from `startedAt` to now, in the traces of its events. Events without a trace are skipped. Never
 * rejects. Without a tracer it does not query the database.
 */
export async function traceFanOut(
  { db, clock, logger, tracer = noTracer }: FanOutTraceOptions,
  eventIds: readonly string[],
  startedAt: Date,
): Promise<void> {
  if (tracer === noTracer || eventIds.length === 0) return
  const endedAt = clock.now()
  try {
    for (const event of await findTraced(db, eventIds)) recordFanOut(tracer, event, { startedAt, endedAt })
  } catch (error) {
    logger.warn({ err: error }, 'cannot record a fan-out in the traces of its events')
  }
}

/** Records when an event was matched with webhooks, if the event is traced. */
export function recordFanOut(
  tracer: Tracer,
  { id, type, traceparent }: { id: string; type: string; traceparent: string | null },
  { startedAt, endedAt }: { startedAt: Date; endedAt: Date },
): void {
  if (traceparent === null) return
  const attributes = { 'postern.event.id': id, 'postern.event.type': type }
  tracer.start({ name: 'fan-out', kind: 'internal', parent: traceparent, attributes, startedAt }).end({ endedAt })
}

async function findTraced(db: Db, eventIds: readonly string[]) {
  return db
    .selectFrom('events')
    .select(['id', 'type', 'traceparent'])
    .where('id', '=', sql<string>`ANY(${eventIds}::text[])`)
    .where('traceparent', 'is not', null)
    .execute()
}
