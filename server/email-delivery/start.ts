import { Resolver } from 'node:dns/promises'
import { createMailComposer } from '../message/compose-in-thread.ts'
import type { MailTokens } from '../message/mail-tokens.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { OperatorError } from '../shared/errors.ts'
import { createTransport, type TransportConfig, type TransportKind } from '../smtp/create-transport.ts'
import type { RelayConfig } from '../smtp/relay-url.ts'
import type { Transport } from '../smtp/transport.ts'
import { startCaptureSink } from '../stored-messages/capture-listener.ts'
import type { MailMetrics } from './metrics.ts'
import { tellOfRelay } from './relay-log.ts'
import { createSigners, type Signers } from './signers.ts'
import { type MailWorker, type MailWorkerOptions, startMailWorker } from './worker.ts'

/** Sending email: the worker of the accounts' emails, and the means to send others. */
export type MailSending = MailWorker & { transport: Transport; signers: Signers }

/** The settings of sending email. */
export type MailConfig = TransportConfig & {
  transport: 'relay' | 'direct' | 'capture'
  /** The relay. Required for the transport `relay`. */
  relay: RelayConfig | null
  /** The port on 127.0.0.1 of the server that stores captured email; 0: any free port. */
  capturePort: number
  /** DNS servers in the format of `node:dns`; null: those of the system. */
  dnsServers: readonly string[] | null
  /** True: mail servers may have addresses that are not public. */
  allowPrivateNetworks: boolean
}

export type MailOptions = Pick<MailWorkerOptions, 'db' | 'queue' | 'clock' | 'logger' | 'outbox' | 'pollIntervalMs'> & {
  config: MailConfig
  tokens: MailTokens
  /** The encryption key. The keys of the tokens are derived from it. */
  key: Buffer
  secretBox: SecretBox
  metrics: MailMetrics
  /** Returns the public URL of this service, without a slash at the end. Not called while `faultOfLinks` is set. */
  publicUrl: () => string
  /** The reason why links in emails would not lead to this service, as text for people; null: they do. */
  faultOfLinks: string | null
  /** True: relays are asked for success notifications. Only useful if this service can receive them. */
  successNotifications: boolean
}

/** Timeout for the first DNS query. The second and last one waits twice as long. Milliseconds. */
const dnsTimeoutMs = 2_500
/** Time for messages on their way to the capture server when the service stops. Milliseconds. */
const lastMessagesMs = 1_000

/**
 * Starts sending email in this process, with the capture server if email is captured. Throws OperatorError when the
 * capture port is not available.
 */
export async function startMail(options: MailOptions): Promise<MailSending> {
  await using starting = new AsyncDisposableStack()
  const { db, clock, logger, tokens, config } = options
  const to = await wayOut()
  const transport = createTransport({ ...options, to, onUnusable: options.metrics.onUnusable })
  starting.defer(() => transport.close())
  const signers = createSigners(options)
  const worker = startMailWorker({
    ...options,
    ...options.metrics,
    transport,
    composer: createMailComposer(options),
    signers,
    concurrency: config.concurrency,
    connectionsPerHost: config.connectionsPerHost,
    copyForEach: config.transport !== 'capture' && options.successNotifications,
  })
  const running = starting.move()
  return {
    ...worker,
    transport,
    signers,
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
