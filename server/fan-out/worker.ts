import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { type Loop, startLoop } from '../lib/polling-loop.ts'
import type { Tracer } from '../observability/tracing/tracer.ts'
import type { Queue } from '../queue/queue.ts'
import type { DeliveryWorker } from '../webhook-delivery/worker.ts'
import { fanOutBatch } from './fan-out.ts'
import { traceFanOut } from './trace.ts'

export type FanOutWorkerOptions = {
  db: Db
  queue: Queue
  clock: Clock
  logger: Logger
  /** The worker that delivers leased events and claims the other deliveries. */
  delivery: Pick<DeliveryWorker, 'intakes' | 'lease' | 'isOpen' | 'offer'>
  /** Milliseconds between polls when nothing wakes the worker. */
  intervalMs: number
  /** Records fan-outs in the traces of their events. Default: records nothing. */
  tracer?: Tracer
}

/**
 * Starts fanning out the outbox, batch by batch. While more events wait than fit into a batch, it waits a moment for
 * room in memory: deliveries from memory are the fastest and cost the least.
 */
export function startFanOutWorker(options: FanOutWorkerOptions): Loop {
  const { clock, logger, delivery, intervalMs } = options

  return startLoop({
    intervalMs,
    onError: (error) => logger.error({ err: error }, 'fan-out failed; trying again'),
    async run() {
      const startedAt = clock.now()
      using intake = await delivery.intakes.open()
      const done = await fanOutBatch({ ...options, taking: { intake, lease: delivery.lease, isOpen: delivery.isOpen } })
      intake.fill(done)
      const { queued, eventIds, looked, rest } = done
      for (const { name, count } of queued) delivery.offer(name, count)
      // Runs in the background: nothing waits for traces.
      void traceFanOut(options, eventIds, startedAt)
      return rest || looked.from === 'kinds' || !looked.isAll
    },
  })
}
