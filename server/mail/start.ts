import type { Registry } from 'prom-client'
import type { SecretBox } from '../secrets.ts'
import { startCaptureSink } from './capture/sink.ts'
import { createComposer } from './message/compose.ts'
import type { MailTokens } from './message/tokens.ts'
import { createMailMetrics } from './metrics.ts'
import { createSigners } from './signers.ts'
import { createTransport, type TransportConfig, type TransportKind } from './smtp/transports.ts'
import { type MailWorker, type MailWorkerOptions, startMailWorker } from './worker.ts'

/** How email leaves. `capture`: not at all; it is kept, by a sink on this port of 127.0.0.1, 0 for any. */
export type WayOut = Exclude<TransportKind, { kind: 'capture' }> | { kind: 'capture'; port: number }

export type MailOptions = Pick<MailWorkerOptions, 'db' | 'queue' | 'clock' | 'logger' | 'outbox' | 'pollIntervalMs'> & {
  config: TransportConfig
  wayOut: WayOut
  tokens: MailTokens
  secretBox: SecretBox
  registry: Registry
  /** Where this service is reached from outside, without a slash at the end. */
  publicUrl: () => string
  /** Whether relays are asked to tell of success, because there is somebody to listen. */
  successNotifications: boolean
}

/** For messages that are under way to the sink as the service stops. Milliseconds. */
const lastMessagesMs = 1_000

/**
 * Starts the sending of email in this process, with the sink it goes to where it does not leave. Throws
 * OperatorError when the port of the sink cannot be had.
 */
export async function startMail(options: MailOptions): Promise<MailWorker> {
  await using starting = new AsyncDisposableStack()
  const { db, clock, logger, tokens, wayOut } = options
  const to = await open(wayOut)
  const transport = createTransport({ ...options, to })
  starting.defer(() => transport.close())
  const worker = startMailWorker({
    ...options,
    ...createMailMetrics(options.registry),
    transport,
    composer: createComposer(options),
    signers: createSigners(options),
    concurrency: options.config.concurrency,
  })
  const running = starting.move()
  return {
    ...worker,
    async stop(deadlineMs) {
      await worker.stop(deadlineMs)
      await running.disposeAsync()
    },
  }

  async function open(way: WayOut): Promise<TransportKind> {
    if (way.kind !== 'capture') return way
    const sink = await startCaptureSink({ db, port: way.port, clock, logger, readReturnPath: tokens.readReturnPath })
    starting.defer(() => sink.close(lastMessagesMs))
    return { kind: 'capture', port: () => sink.port }
  }
}
