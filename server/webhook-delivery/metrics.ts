import { sql } from 'kysely'
import { Counter, Histogram, type Registry } from 'prom-client'
import type { Db, Handle } from '../database/connection.ts'
import { readGauge } from '../observability/registry.ts'
import type { Queue } from '../queue/queue.ts'
import type { ExchangeOutcome } from './attempt/exchange.ts'
import type { Verdict } from './attempt/verdict.ts'
import type { DeliveryCensus } from './worker.ts'

export type DeliveryMetrics = {
  /** Counts one attempt. */
  onAttempt(outcome: ExchangeOutcome, verdict: Verdict): void
  /** Counts one claimed delivery. */
  onWaited(seconds: number): void
  /** Registers the metrics of flows and places. Only a process that delivers calls it. */
  watchFlows(census: () => DeliveryCensus): void
}

/**
 * Creates the metrics of deliveries and of waiting emails. They are counted as things happen, or read from the database
 * on each scrape.
 */
export function createDeliveryMetrics(registry: Registry, { db, queue }: { db: Db; queue: Queue }): DeliveryMetrics {
  const registers = [registry]
  const attempts = new Counter({
    name: 'postern_delivery_attempts_total',
    help: 'Attempts made by this process, by what came of them.',
    labelNames: ['outcome'] as const,
    registers,
  })
  const duration = new Histogram({
    name: 'postern_delivery_attempt_duration_seconds',
    help: 'Seconds from the start of an attempt to its answer or failure.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  })
  const wait = new Histogram({
    name: 'postern_delivery_wait_seconds',
    help: 'Seconds that deliveries waited in the queue since they were due, until this process claimed them.',
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200],
    registers,
  })
  readGauge(registry, {
    name: 'postern_outbox_events',
    help: 'Committed events that await their fan-out.',
    read: async (gauge) => gauge.set(await countOutbox(db, countLimit)),
  })
  readGauge(registry, {
    name: 'postern_queue_deliveries',
    help: 'Deliveries in the queue by state, as of the last monitoring pass.',
    labelNames: ['state'],
    async read(gauge) {
      for (const [state, count] of Object.entries(await queue.depth())) gauge.set({ state }, count)
    },
  })
  readGauge(registry, {
    name: 'postern_queue_emails',
    help: 'Emails in the queue by state, as of the last monitoring pass.',
    labelNames: ['state'],
    async read(gauge) {
      for (const [state, count] of Object.entries(await queue.emails.depth())) gauge.set({ state }, count)
    },
  })
  readGauge(registry, {
    name: 'postern_oldest_undelivered_event_age_seconds',
    help: 'Age of the oldest event that awaits its fan-out or has a pending delivery; 0 when there is none.',
    read: async (gauge) => gauge.set(await oldestUndeliveredAge(db)),
  })
  return {
    onAttempt(outcome, verdict) {
      attempts.inc({ outcome: verdict.kind })
      duration.observe(outcome.durationMs / 1000)
    },
    onWaited: (seconds) => wait.observe(seconds),
    watchFlows: (census) => createFlowMetrics(registry, census),
  }
}

/** Registers the metrics of flows, for a process that delivers: see docs/architecture/delivery-engine.md. */
function createFlowMetrics(registry: Registry, census: () => DeliveryCensus): void {
  readGauge(registry, {
    name: 'postern_delivery_flows_waiting',
    help: 'URLs with deliveries that wait in this process, by what they wait for.',
    labelNames: ['waiting_for'],
    async read(gauge) {
      for (const [waiting_for, count] of Object.entries(census().waiting)) gauge.set({ waiting_for }, count)
    },
  })
  readGauge(registry, {
    name: 'postern_delivery_flows_stalled',
    help: 'URLs that answer nothing: this process sends one request to each every 5 seconds.',
    read: async (gauge) => gauge.set(census().stalled),
  })
  readGauge(registry, {
    name: 'postern_delivery_places',
    help: 'Deliveries that this process can have in flight or be writing down at once.',
    read: async (gauge) => gauge.set(census().places),
  })
  readGauge(registry, {
    name: 'postern_delivery_places_taken',
    help: 'How many of these places are taken.',
    read: async (gauge) => gauge.set(census().taken),
  })
}

/** Counting stops here, to bound the cost of a scrape. */
const countLimit = 100_000

/** Returns the number of events that await their fan-out, up to `most`. */
export async function countOutbox(handle: Handle, most: number): Promise<number> {
  const { rows } = await sql<{ count: string }>`
    SELECT count(*) AS count FROM (SELECT 1 FROM outbox_rows LIMIT ${most}) waiting
  `.execute(handle)
  return Number(rows[0]?.count ?? 0)
}

/** Returns the age of the oldest event that awaits its fan-out or has a pending delivery. Seconds; 0: there is none. */
export async function oldestUndeliveredAge(handle: Handle): Promise<number> {
  const { rows } = await sql<{ age: number }>`
    SELECT COALESCE(EXTRACT(EPOCH FROM now() - min(e.created_at)), 0)::float8 AS age FROM events e WHERE e.id IN (
      (SELECT event_id FROM outbox_rows ORDER BY event_id LIMIT 1)
      UNION ALL
      (SELECT event_id FROM deliveries WHERE status = 'pending' ORDER BY id LIMIT 1)
    )
  `.execute(handle)
  return Math.max(0, rows[0]?.age ?? 0)
}
