import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import type { Logger } from 'pino'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import type { Clock } from '../lib/clock.ts'
import { messageOf } from '../lib/error-codes.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { OperatorError } from '../shared/errors.ts'
import { type ConnectionLimits, createConnectionLimiter } from './admission.ts'
import { readMessage } from './read-message.ts'

/** A message that an SMTP client sent. */
export type ReceivedMessage = {
  /** The reverse path without angle brackets; empty: none. */
  mailFrom: string
  recipients: string[]
  /** The message after removing dot-stuffing, cut to `keepBytes`. */
  content: Buffer
}

export type SmtpListenerOptions = {
  host: string
  /** 0: any free port. */
  port: number
  /** The name of the setting of the port, for the error when the address is not available. */
  portSetting: string
  /** The host name in the greeting. */
  name: string
  /** Private key and certificate chain, PEM. Null: no STARTTLS. */
  tls: { key: string; cert: string } | null
  /** Longer messages are refused. */
  maxMessageBytes: number
  /** Maximum bytes of a message to keep. The rest is read and discarded. Default: all. */
  keepBytes?: number
  maxRecipients: number
  /** Maximum connections in total. Further clients are told to try again later. */
  maxConnections: number
  /** Maximum lifetime of a connection in milliseconds. Default: unlimited. */
  lifetimeMs?: number
  /** Limits per client address. Default: none. */
  connectionLimits?: ConnectionLimits
  /** Returns whether the mailbox exists here. Other recipients are refused: nothing is relayed. */
  acceptsRecipient: (address: string) => boolean | Promise<boolean>
  /**
   * Takes responsibility for a message. When it resolves, the client gets 250, so the message must be stored by then.
   * When it rejects, the client is told to try again later.
   */
  onMessage: (message: ReceivedMessage) => Promise<void>
  clock: Clock
  logger: Logger
}

export type SmtpListener = {
  host: string
  port: number
  /** Accepts no new connections, waits up to `deadlineMs` for messages in transfer, then closes all connections. */
  close(deadlineMs: number): Promise<void>
}

/** Timeout of an idle connection. RFC 5321 §4.5.3.2.7 asks for 5 minutes. Milliseconds. */
const idleTimeoutMs = 60_000
/** To keep more bytes of a message than this takes one of a few permits, so that memory is bounded. */
const smallMessageBytes = 1_048_576
const largeMessagesAtOnce = 4
/** Refused recipients before a connection is closed, to slow down clients that guess addresses. */
const maxRefusals = 10
/** RFC 5321 §4.5.3.1.4 asks for 512. SMTP extensions make commands longer. */
const maxCommandBytes = 2_048
/** Commands of smtp-server that a receiving server does not need. */
const disabledCommands = ['AUTH', 'XCLIENT', 'XFORWARD', 'WIZ', 'SHELL', 'KILL', 'VRFY']

/** A reply to the SMTP client. */
class SmtpReply extends Error {
  override name = 'SmtpReply'
  readonly responseCode: number

  constructor(responseCode: number, message: string) {
    super(message)
    this.responseCode = responseCode
  }
}

/**
 * Starts an SMTP server that passes every message to `onMessage`. Memory is bounded by the number of connections and
 * the number of large messages that are read at the same time.
 *
 * Throws OperatorError when it cannot listen on the address.
 */
export async function listenSmtp(options: SmtpListenerOptions): Promise<SmtpListener> {
  const { host, port, tls, logger } = options
  const semaphore = createSemaphore(largeMessagesAtOnce)
  const limiter =
    options.connectionLimits === undefined ? null : createConnectionLimiter(options.connectionLimits, options.clock)
  const sessions = new Map<string, ListenerSession>()
  const messages = new Set<Promise<void>>()
  const sockets = new Set<Socket>()

  const smtp = new SMTPServer({
    name: options.name,
    banner: 'Postern',
    size: options.maxMessageBytes,
    maxClients: options.maxConnections,
    socketTimeout: idleTimeoutMs,
    authOptional: true,
    disabledCommands: tls === null ? [...disabledCommands, 'STARTTLS'] : disabledCommands,
    disableReverseLookup: true,
    logger: false,
    ...(tls === null ? {} : { ...tls, minVersion: 'TLSv1.2' as const }),
    // Missing in the types.
    ...{ maxCommandLength: maxCommandBytes, noDelay: true, lenientAddressParsing: true },
    onConnect(session, callback) {
      if (limiter !== null && !limiter.enter(session.remoteAddress)) {
        return callback(new SmtpReply(421, '4.7.0 Too many connections from your address; try again later'))
      }
      sessions.set(session.id, { refusals: 0, stream: null })
      callback()
    },
    onRcptTo({ address }, session, callback) {
      admit(address, session).then(
        () => callback(),
        (error: unknown) => callback(replyTo(error)),
      )
    },
    onData(stream, session, callback) {
      const known = sessions.get(session.id)
      if (known !== undefined) known.stream = stream
      const handled = take(stream, session).then(
        () => callback(null, '2.6.0 Taken'),
        (error: unknown) => callback(replyTo(error)),
      )
      messages.add(handled)
      handled.finally(() => messages.delete(handled)).catch(() => undefined)
    },
    onClose(session) {
      const known = sessions.get(session.id)
      if (known === undefined) return
      sessions.delete(session.id)
      // Otherwise the reader would wait forever for the rest of the message.
      known.stream?.destroy(new Error('the connection was closed'))
      limiter?.leave(session.remoteAddress)
    },
  })
  smtp.on('error', (error) => logger.debug({ err: error }, 'an SMTP connection failed'))
  smtp.server.on('connection', (socket: Socket) => watch(socket))
  takePostmaster(smtp, options.name)

  async function admit(address: string, session: SMTPServerSession): Promise<void> {
    if (session.envelope.rcptTo.length >= options.maxRecipients) throw new SmtpReply(452, '4.5.3 Too many recipients')
    if (await options.acceptsRecipient(address)) return
    const known = sessions.get(session.id)
    if (known !== undefined && ++known.refusals >= maxRefusals) {
      throw new SmtpReply(421, '4.7.0 Too many recipients that are not here')
    }
    throw new SmtpReply(550, '5.7.1 There is no such mailbox here, and nothing is relayed')
  }

  async function take(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<void> {
    const { mailFrom, rcptTo } = session.envelope
    let release: (() => void) | undefined
    try {
      const content = await readMessage(stream, {
        maxBytes: options.maxMessageBytes,
        keepBytes: options.keepBytes ?? options.maxMessageBytes,
        smallBytes: smallMessageBytes,
        onLarge: async () => {
          release = await semaphore.acquire()
        },
      })
      if (content === null) {
        throw new SmtpReply(552, `5.3.4 The message is longer than ${options.maxMessageBytes} bytes`)
      }
      await options.onMessage({
        mailFrom: mailFrom === false ? '' : mailFrom.address,
        recipients: rcptTo.map(({ address }) => address),
        content,
      })
    } finally {
      release?.()
    }
  }

  function replyTo(error: unknown): SmtpReply {
    if (error instanceof SmtpReply) return error
    logger.warn({ err: error }, 'a received message could not be processed; its sender is told to try again')
    return new SmtpReply(451, '4.3.0 The message cannot be taken now; try again later')
  }

  function watch(socket: Socket): void {
    sockets.add(socket)
    const timer = options.lifetimeMs === undefined ? undefined : setTimeout(() => socket.destroy(), options.lifetimeMs)
    socket.once('close', () => {
      clearTimeout(timer)
      sockets.delete(socket)
    })
  }

  await bind(smtp, options)
  let closing: Promise<void> | undefined
  return {
    host,
    port: addressOf(smtp).port || port,
    close(deadlineMs) {
      closing ??= close(deadlineMs)
      return closing
    },
  }

  async function close(deadlineMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => smtp.close(resolve))
    await settledWithin([...messages], deadlineMs)
    for (const socket of sockets) socket.destroySoon()
    await closed
  }
}

type Connection = { _parseAddressCommand(name: string, command: string | Buffer): unknown }

/**
 * Accepts `RCPT TO:<postmaster>`, without a domain and in any letter case, for the postmaster of this host. Source: RFC
 * 5321 §4.5.1. smtp-server refuses every address without a domain before it calls `onRcptTo`, so this rewrites the
 * command before each connection parses it.
 */
function takePostmaster(smtp: SMTPServer, hostname: string): void {
  // The types lack this method. It appends the new connection to the set.
  const server: SMTPServer & { connect?(socket: Socket, options: unknown): void } = smtp
  const connect = server.connect?.bind(smtp)
  if (connect === undefined) throw new Error('smtp-server has changed: it has no method "connect"')
  server.connect = (socket, options) => {
    connect(socket, options)
    const connection: Connection = [...smtp.connections].at(-1)
    const parse = connection._parseAddressCommand.bind(connection)
    connection._parseAddressCommand = (name, command) =>
      parse(name, command.toString().replace(/^(rcpt to\s*:\s*<postmaster)>/i, `$1@${hostname}>`))
  }
}

type ListenerSession = { refusals: number; stream: SMTPServerDataStream | null }

async function bind(smtp: SMTPServer, { host, port, portSetting }: SmtpListenerOptions): Promise<void> {
  smtp.listen(port, host)
  try {
    await once(smtp.server, 'listening')
  } catch (error) {
    throw new OperatorError(
      `cannot listen for mail on ${host}:${port} (${messageOf(error)}); give another port with ${portSetting}`,
      { cause: error },
    )
  }
}

function addressOf({ server }: SMTPServer): AddressInfo {
  return server.address() as AddressInfo
}

async function settledWithin(promises: readonly Promise<void>[], deadlineMs: number): Promise<void> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, deadlineMs)
  await Promise.race([Promise.allSettled(promises), late.promise])
  clearTimeout(timer)
}
