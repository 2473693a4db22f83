import { createLoneEvents } from '../fan-out/lone-events.ts'
import { traceEvents } from '../observability/tracing/events.ts'
import type { Tracer } from '../observability/tracing/tracer.ts'
import { createOutbox, type Outbox } from '../outbox/append.ts'
import type { Lane } from '../shared/lanes.ts'
import { webhookChannel } from '../webhook-delivery/webhook-changes.ts'
import { startWakeUps, type WakeUpOptions } from './wake-ups.ts'
import { startBackgroundWorkers, type WorkersOptions } from './workers.ts'

export type BackgroundOptions = WorkersOptions & {
  /** True: the workers run in this process. False: it only wakes those of other processes. */
  works: boolean
  connectionString: string
  tracer: Tracer
  /** Makes the mail worker of this process look for emails of a lane. */
  wakeMail: (lane: Lane) => void
  /** Handlers of further channels, as for `startWakeUps`. */
  on: WakeUpOptions['on']
}

export type Background = AsyncDisposable & {
  /** Appends events and wakes the fan-out: of this process, or of others. */
  readonly outbox: Outbox
  /** Makes the delivery worker of this process, if there is one, look for due deliveries in this flow. */
  wakeDelivery(flow: number): void
  /** Makes the mail worker look for emails of a lane: of this process, or of others. */
  wakeMail(lane: Lane): void
  /** Returns true if all workers of this process have recently looked for work without an error. */
  workersAlive(): boolean
  /** Stops the workers: see `Workers`. Wake-ups go on until disposal. */
  stop(deadlineMs: number): Promise<void>
}

/** Notified when another process has appended to the outbox. */
const outboxChannel = 'postern_outbox'
/** Notified when another process has put emails of a lane into the queue. */
const emailChannels: Readonly<Record<Lane, string>> = { single: 'postern_emails', bulk: 'postern_emails_in_bulk' }

/**
 * Starts the work behind the requests: the workers, the wake-ups between processes, and the outbox, which wakes the
 * fan-out wherever it runs.
 */
export async function startBackground(options: BackgroundOptions): Promise<Background> {
  await using starting = new AsyncDisposableStack()
  const { works, connectionString, clock, logger, tracer, webhookChanges, wakeMail } = options
  const workers = works ? await startBackgroundWorkers(options) : null
  if (workers !== null) starting.defer(() => workers.stop(0))

  const wakeUps = startWakeUps({
    connectionString,
    onError: (error) => logger.error({ err: error }, 'the connection for wake-ups failed'),
    hearing: webhookChanges,
    on: {
      ...options.on,
      [outboxChannel]: () => workers?.wakeFanOut(),
      [emailChannels.single]: () => wakeMail('single'),
      [emailChannels.bulk]: () => wakeMail('bulk'),
      [webhookChannel]: webhookChanges.tellNotified,
    },
  })
  starting.defer(() => wakeUps.stop())

  const outbox = createOutbox({
    clock,
    wake: () => (workers === null ? wakeUps.notify(outboxChannel) : workers.wakeFanOut()),
    trace: (events) => traceEvents(tracer, events),
    ...(workers !== null && { loneEvents: createLoneEvents({ clock, leasing: workers.leasing, tracer }) }),
  })
  const running = starting.move()
  return {
    outbox,
    wakeDelivery: (flow) => workers?.wakeDelivery(flow),
    wakeMail: (lane) => (works ? wakeMail(lane) : wakeUps.notify(emailChannels[lane])),
    workersAlive: () => workers === null || workers.alive(),
    stop: async (deadlineMs) => workers?.stop(deadlineMs),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
