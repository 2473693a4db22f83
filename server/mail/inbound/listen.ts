import { readFile } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { Registry } from 'prom-client'
import { messageOf } from '../../errno.ts'
import { OperatorError } from '../../errors.ts'
import type { Outbox } from '../../outbox/append.ts'
import { listenSmtp, type SmtpListener } from '../receiving/listener.ts'
import { recordFacts } from '../record.ts'
import { createInboundMetrics } from './metrics.ts'
import { isReturnPathHost } from './queries.ts'
import { createReceiver, keptBytes, type ReceiveOptions } from './receive.ts'
import { hostOfRole } from './roles.ts'

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
  logger: Logger
}

/** Notifications say what they have to say at their beginning; some carry the message back whole behind it. */
export const maxInboundBytes = 64 * 2 ** 20
const maxRecipients = 10
/** Each can hold `keptBytes`. */
const maxConnections = 100
/** Large providers send from few addresses. */
const door = { connectionsPerAddress: 20, connectionsPerMinute: 300 }
const lifetimeMs = 10 * 60_000

/**
 * Listens for what comes back to the return path of emails: it takes messages to the signed addresses that
 * this service made and to the few every host has, at its own name and at that of return paths, and nothing
 * else. A message is answered 250 once what it says is committed.
 *
 * Throws OperatorError when the address cannot be had, or a file cannot be read.
 */
export async function startInboundListener(options: InboundListenerOptions): Promise<SmtpListener> {
  const { db, host, port, hostname, clock, logger, tokens, outbox } = options
  const receive = createReceiver({
    ...options,
    record: async (facts) => {
      await recordFacts(db, { outbox, source: 'notification' }, facts)
    },
    onMessage: createInboundMetrics(options.registry),
  })
  return listenSmtp({
    host,
    port,
    portSetting: 'INBOUND_SMTP_PORT',
    name: hostname,
    tls: options.tls === null ? null : await readTls(options.tls),
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

async function readTls({ certFile, keyFile }: { certFile: string; keyFile: string }) {
  return {
    cert: await readSetting('INBOUND_SMTP_TLS_CERT', certFile),
    key: await readSetting('INBOUND_SMTP_TLS_KEY', keyFile),
  }
}

async function readSetting(name: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new OperatorError(`${name}: the file cannot be read (${messageOf(error)}); give one that can`, {
      cause: error,
    })
  }
}
