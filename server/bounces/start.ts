import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import type { RecipientFact } from '../email-delivery/outcomes.ts'
import { recordFacts } from '../email-delivery/record-outcomes.ts'
import type { Outbox } from '../outbox/append.ts'
import { listenSmtp, type SmtpListener } from '../smtp-listener/listener.ts'
import { readTlsFiles } from '../smtp-listener/tls-files.ts'
import { createInboundMetrics } from './metrics.ts'
import { isReturnPathHost } from './queries.ts'
import { createReceiver, keptBytes, type ReceiveOptions } from './receive.ts'
import { hostOfRole } from './role-addresses.ts'

export type InboundListenerOptions = Omit<ReceiveOptions, 'record' | 'onMessage'> & {
  host: string
  /** 0: any free port. */
  port: number
  /** Files, PEM; null: no STARTTLS. */
  tls: { readonly certFile: string; readonly keyFile: string } | null
  /** What it calls itself, and where its own mailboxes are. */
  hostname: string
  outbox: Outbox
  registry: Registry
  /** Told of everything that a notification said and was written down. */
  onFact: (fact: RecipientFact) => void
  logger: Logger
}

/** Notifications say what they have to say at their beginning; some carry the message back whole behind it. */
export const maxInboundBytes = 64 * 2 ** 20
const maxRecipients = 10
/** Each can hold `keptBytes`. */
const maxConnections = 100
/** Large providers send from few addresses. */
const door = { connectionsPerAddress: 20, connectionsPerMinute: 300 }
const tlsSettings = { cert: 'INBOUND_SMTP_TLS_CERT', key: 'INBOUND_SMTP_TLS_KEY' }
const lifetimeMs = 10 * 60_000

/**
 * Listens for what comes back to the return path of emails: it takes messages to the signed addresses that
 * this service made and to the few every host has, at its own name and at that of return paths, and nothing
 * else. A message is answered 250 once what it says is committed.
 *
 * Throws OperatorError when the address cannot be had, or a file is not what it is to be.
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
    keepBytes: keptBytes,
    maxRecipients,
    maxConnections,
    lifetimeMs,
    door,
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
