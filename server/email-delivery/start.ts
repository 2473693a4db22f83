import { Resolver } from 'node:dns/promises'
import { createMailComposer } from '../message/compose-in-thread.ts'
import type { MailTokens } from '../message/tokens.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { OperatorError } from '../shared/errors.ts'
import type { RelayConfig } from '../smtp/relay-url.ts'
import { createTransport, type TransportConfig, type TransportKind } from '../smtp/transports.ts'
import { startCaptureSink } from '../stored-messages/capture.ts'
import type { MailMetrics } from './metrics.ts'
import { tellOfRelay } from './relay-log.ts'
import { createSigners } from './signers.ts'
import { type MailWorker, type MailWorkerOptions, startMailWorker } from './worker.ts'

/** How email leaves, as the settings say it. */
export type MailConfig = TransportConfig & {
  transport: 'relay' | 'direct' | 'capture'
  /** Needed for `relay`. */
  relay: RelayConfig | null
  /** Of the sink on 127.0.0.1 that keeps what does not leave; 0: any free port. */
  capturePort: number
  /** As `node:dns` takes them; null: those of the system. */
  dnsServers: readonly string[] | null
  /** Whether mail servers may have addresses that are not public. */
  allowPrivateNetworks: boolean
}

export type MailOptions = Pick<MailWorkerOptions, 'db' | 'queue' | 'clock' | 'logger' | 'outbox' | 'pollIntervalMs'> & {
  config: MailConfig
  tokens: MailTokens
  /** The encryption key, from which the keys of the tokens are derived. */
  key: Buffer
  secretBox: SecretBox
  metrics: MailMetrics
  /** Where this service is reached from outside, without a slash at the end. Not asked where links lead nowhere. */
  publicUrl: () => string
  /** Why links in emails would lead nowhere, for people; null: they lead to this service. */
  faultOfLinks: string | null
  /** Whether relays are asked to tell of success, because there is somebody to listen. */
  successNotifications: boolean
}

/** For an answer of a name server, at first; then once more, twice as long. Milliseconds. */
const dnsTimeoutMs = 2_500
/** For messages that are under way to the sink as the service stops. Milliseconds. */
const lastMessagesMs = 1_000

/**
 * Starts the sending of email in this process, with the sink it goes to where it does not leave. Throws
 * OperatorError when the port of the sink cannot be had.
 */
export async function startMail(options: MailOptions): Promise<MailWorker> {
  await using starting = new AsyncDisposableStack()
  const { db, clock, logger, tokens, config } = options
  const to = await wayOut()
  const transport = createTransport({ ...options, to, onUnusable: options.metrics.onUnusable })
  starting.defer(() => transport.close())
  const worker = startMailWorker({
    ...options,
    ...options.metrics,
    transport,
    composer: createMailComposer(options),
    signers: createSigners(options),
    concurrency: config.concurrency,
    connectionsPerHost: config.connectionsPerHost,
    copyForEach: config.transport !== 'capture' && options.successNotifications,
  })
  const running = starting.move()
  return {
    ...worker,
    async stop(deadlineMs) {
      await worker.stop(deadlineMs)
      await running.disposeAsync()
    },
  }

  async function wayOut(): Promise<TransportKind> {
    switch (config.transport) {
      case 'relay':
        if (config.relay === null) throw new OperatorError('MAIL_TRANSPORT=relay needs SMTP_URL')
        return { kind: 'relay', relay: config.relay, onUse: tellOfRelay(config.relay, logger) }
      case 'direct':
        return {
          kind: 'direct',
          direct: { resolver: resolverOf(config), allowPrivateNetworks: config.allowPrivateNetworks },
        }
      case 'capture': {
        const { capturePort: port } = config
        const readReturnPath = (address: string) => tokens.readReturnPath(address)?.emailId ?? null
        const sink = await startCaptureSink({ db, port, clock, logger, readReturnPath })
        starting.defer(() => sink.close(lastMessagesMs))
        return { kind: 'capture', port: () => sink.port }
      }
    }
  }
}

function resolverOf({ dnsServers }: MailConfig): Resolver {
  const resolver = new Resolver({ timeout: dnsTimeoutMs, tries: 2 })
  if (dnsServers !== null) resolver.setServers(dnsServers)
  return resolver
}
