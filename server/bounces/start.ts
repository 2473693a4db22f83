import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { keptInboundBytes } from '../../contract/inbound-limits.ts'
import type { RecipientFact } from '../email-delivery/recipient-facts.ts'
import { recordFacts } from '../email-delivery/record-facts.ts'
import type { Outbox } from '../outbox/append.ts'
import { listenSmtp, type SmtpListener } from '../smtp-listener/listener.ts'
import { readTlsFiles } from '../smtp-listener/tls-files.ts'
import { createInboundMetrics } from './metrics.ts'
import { isReturnPathHost } from './queries.ts'
import { createReceiver, type ReceiveOptions } from './receive.ts'
import { hostOfRole } from './role-addresses.ts'

export type InboundListenerOptions = Omit<ReceiveOptions, 'record' | 'onMessage'> & {
  host: string
  /** 0: any free port. */
  port: number
  /** PEM files; null: no STARTTLS. */
  tls: { readonly certFile: string; readonly keyFile: string } | null
  /** The host name in the greeting, and the domain of its own role addresses. */
  hostname: string
  outbox: Outbox
  registry: Registry
  /** Called with every stored fact of a notification. */
  onFact: (fact: RecipientFact) => void
  logger: Logger
}

/** Some notifications contain the whole returned message after their content. */
export const maxInboundBytes = 64 * 2 ** 20
const maxRecipients = 10
/** Maximum connections. Each can hold `keptInboundBytes` in memory. */
const maxConnections = 100
/** Limits per client address. Large providers send from few addresses. */
const connectionLimits = { connectionsPerAddress: 20, connectionsPerMinute: 300 }
const tlsSettings = { cert: 'INBOUND_SMTP_TLS_CERT', key: 'INBOUND_SMTP_TLS_KEY' }
const lifetimeMs = 10 * 60_000

/**
 * Starts the SMTP server for bounces and complaints. It accepts only signed return paths of this service and role
 * addresses, at its own host name and at the hosts of return paths. It replies 250 to a message when its facts are
 * committed.
 *
 * Throws OperatorError when it cannot listen on the address, or when a TLS file is not valid.
 */
export async function startInboundListener(options: InboundListenerOptions): Promise<SmtpListener> {
  const { db, host, port, hostname, clock, logger, tokens, outbox, onFact } = options
  const receive = createReceiver({
    ...options,
    record: async (facts) => {
      await recordFacts(db, { outbox, source: 'notification' }, facts)
      facts.forEach(onFact)
    },
    onMessage: createInboundMetrics(options.registry),
  })
  return listenSmtp({
    host,
    port,
    portSetting: 'INBOUND_SMTP_PORT',
    name: hostname,
    tls: options.tls === null ? null : await readTlsFiles(options.tls, tlsSettings),
    maxMessageBytes: maxInboundBytes,
    keepBytes: keptInboundBytes,
    maxRecipients,
    maxConnections,
    lifetimeMs,
    connectionLimits,
    acceptsRecipient,
    onMessage: receive,
    clock,
    logger,
  })

  async function acceptsRecipient(address: string): Promise<boolean> {
    if (tokens.readReturnPath(address) !== null) return true
    const roleAt = hostOfRole(address)
    return roleAt !== null && (roleAt === hostname.toLowerCase() || (await isReturnPathHost(db, roleAt)))
  }
}
