import type { StartTimer } from '../lib/timer.ts'
import { authenticate, type Credentials } from './authenticate.ts'
import { brokenOff, SmtpConnection, SmtpConnectionError, type TlsName } from './connection.ts'
import type { Reply } from './reply.ts'
import { commandTimeoutMs, connectTimeoutMs, greetingTimeoutMs, quitTimeoutMs, tlsTimeoutMs } from './time-limits.ts'

/**
 * How a connection is secured. `opportunistic`: STARTTLS with any certificate if offered, else unencrypted (RFC 7435).
 * `verified`: STARTTLS with a valid certificate, or no session. `implicit`: TLS from the first byte with a valid
 * certificate.
 */
export type TlsMode = 'opportunistic' | 'verified' | 'implicit'

/** A server to connect to. */
export type SessionTarget = {
  /** The host name, or the address of a host without one. The certificate must be valid for it. */
  name: string
  address: string
  port: number
  tls: TlsMode
  /** Sent only over TLS with a valid certificate. Null: no login. */
  credentials: Credentials | null
}

export type SessionMeans = {
  /** The name of this service in EHLO. */
  hostname: string
  startTimer: StartTimer
  /** Additional trusted certificate authorities, PEM. */
  ca: string | undefined
}

/** An SMTP session that has been opened and is ready for messages. */
export type Session = {
  host: string
  connection: SmtpConnection
  /** The extensions of the server: keywords in upper case, with their parameters. Source: RFC 5321 §4.1.1.1. */
  extensions: ReadonlyMap<string, string>
}

export type SessionStage = 'connect' | 'greeting' | 'ehlo' | 'starttls' | 'auth'

type SessionRefusal = {
  stage: SessionStage
  reply: Reply | null
  host: string
  message: string
  /** True: waiting does not help. Default: false. */
  isPermanent?: boolean
  /** True: an attacker on the network may have forged the reply. Default: false. */
  isForgeable?: boolean
}

/** A session could not be opened, because of a reply or the connection. The message is a sentence for people. */
export class SessionError extends Error {
  override name = 'SessionError'
  readonly stage: SessionStage
  readonly reply: Reply | null
  readonly host: string
  /** True when waiting does not help, for a reason other than the reply. */
  readonly isPermanent: boolean
  /** True when the reply came unencrypted although TLS is required: it may be forged (RFC 8461 §5.1). */
  readonly isForgeable: boolean

  constructor(refusal: SessionRefusal, options?: ErrorOptions) {
    super(refusal.message, options)
    this.stage = refusal.stage
    this.reply = refusal.reply
    this.host = refusal.host
    this.isPermanent = refusal.isPermanent ?? false
    this.isForgeable = refusal.isForgeable ?? false
  }
}

/** Connects, sends EHLO, starts TLS and logs in. Throws SessionError. `signal` aborts it. */
export async function openSession(target: SessionTarget, means: SessionMeans, signal: AbortSignal): Promise<Session> {
  const first = new Opening(target, means, signal)
  try {
    return await first.open(true)
  } catch (error) {
    const isTlsBroken = error instanceof SessionError && error.stage === 'starttls'
    if (target.tls !== 'opportunistic' || !isTlsBroken || signal.aborted) throw error
    // Opportunistic TLS: if TLS fails, the message is sent unencrypted (RFC 7435 §3).
    return await new Opening(target, means, signal).open(false)
  }
}

/** One attempt to open a session, with the stage that it has reached. */
class Opening {
  readonly #target: SessionTarget
  readonly #means: SessionMeans
  readonly #signal: AbortSignal
  #stage: SessionStage = 'connect'
  #isForgeable: boolean

  constructor(target: SessionTarget, means: SessionMeans, signal: AbortSignal) {
    this.#target = target
    this.#means = means
    this.#signal = signal
    this.#isForgeable = target.tls === 'verified'
  }

  async open(withTls: boolean): Promise<Session> {
    const { address, port, tls } = this.#target
    let connection: SmtpConnection | undefined
    const abort = () => connection?.fail(brokenOff())
    try {
      const implicitTls = tls === 'implicit' ? this.#tlsName() : null
      connection = await SmtpConnection.connect(
        { address, port, implicitTls, timeoutMs: connectTimeoutMs },
        this.#means.startTimer,
        this.#signal,
      )
      this.#signal.addEventListener('abort', abort)
      return await this.#greet(connection, withTls)
    } catch (error) {
      if (error instanceof SessionError) {
        void connection?.quit(quitTimeoutMs)
        throw error
      }
      if (!(error instanceof SmtpConnectionError)) throw error
      const { message } = error
      throw new SessionError({ stage: this.#stage, reply: null, host: this.#target.name, message }, { cause: error })
    } finally {
      this.#signal.removeEventListener('abort', abort)
    }
  }

  async #greet(connection: SmtpConnection, withTls: boolean): Promise<Session> {
    this.#stage = 'greeting'
    const greeting = await connection.reply(greetingTimeoutMs)
    if (greeting.code !== 220) throw this.#refused(greeting, 'The mail server does not take messages now.')
    let extensions = await this.#hello(connection)
    if (withTls && this.#target.tls !== 'implicit' && (await this.#startTls(connection, extensions))) {
      this.#isForgeable = false
      // The extensions must be requested again after STARTTLS (RFC 3207 §4.2).
      extensions = await this.#hello(connection)
    }
    await this.#authenticate(connection, extensions)
    return { host: this.#target.name, connection: connection, extensions }
  }

  async #hello(connection: SmtpConnection): Promise<ReadonlyMap<string, string>> {
    this.#stage = 'ehlo'
    connection.send(`EHLO ${this.#means.hostname}\r\n`)
    const reply = await connection.reply(commandTimeoutMs)
    if (reply.code === 250) return extensionsOf(reply)
    // A server without EHLO (RFC 5321 §3.2).
    if (reply.code < 500) throw this.#refused(reply, 'The mail server refused the greeting.')
    connection.send(`HELO ${this.#means.hostname}\r\n`)
    const plain = await connection.reply(commandTimeoutMs)
    if (plain.code !== 250) throw this.#refused(plain, 'The mail server refused the greeting.')
    return new Map()
  }

  /** Starts TLS if possible. Returns whether the connection is encrypted now. */
  async #startTls(connection: SmtpConnection, extensions: ReadonlyMap<string, string>): Promise<boolean> {
    this.#stage = 'starttls'
    const isNeeded = this.#target.tls === 'verified'
    if (!extensions.has('STARTTLS')) {
      if (isNeeded) throw this.#refused(null, 'The mail server offers no secure connection, and one is demanded.')
      return false
    }
    connection.send('STARTTLS\r\n')
    const reply = await connection.reply(commandTimeoutMs)
    if (reply.code === 220) {
      await connection.startTls(this.#tlsName(), tlsTimeoutMs)
      return true
    }
    if (isNeeded) throw this.#refused(reply, 'The mail server refused a secure connection, and one is demanded.')
    // The server closes the connection, so it cannot be used unencrypted either (RFC 5321 §3.8).
    if (reply.code === 421) throw this.#refused(reply, 'The mail server ended the connection instead of securing it.')
    return false
  }

  async #authenticate(connection: SmtpConnection, extensions: ReadonlyMap<string, string>): Promise<void> {
    const { credentials } = this.#target
    if (credentials === null) return
    this.#stage = 'auth'
    if (!connection.isVerified) throw this.#refused(null, 'The password is told over a secure connection only.')
    const refusal = await authenticate(connection, extensions.get('AUTH') ?? '', credentials)
    if (refusal !== null) throw this.#refused(refusal.reply, refusal.message)
  }

  #tlsName(): TlsName {
    const { name, tls } = this.#target
    return { name, mustBeValid: tls !== 'opportunistic', ca: this.#means.ca }
  }

  #refused(reply: Reply | null, message: string): SessionError {
    const isForgeable = this.#isForgeable
    return new SessionError({ stage: this.#stage, reply, host: this.#target.name, message, isForgeable })
  }
}

function extensionsOf(reply: Reply): ReadonlyMap<string, string> {
  return new Map(
    reply.lines.slice(1).map((line) => {
      // Some servers write AUTH=PLAIN, the form of an early draft.
      const [, keyword = '', parameters = ''] = /^([^\s=]*)[\s=]*(.*)$/s.exec(line) ?? []
      return [keyword.toUpperCase(), parameters.trim()]
    }),
  )
}
