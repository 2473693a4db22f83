import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSecurely, type TLSSocket } from 'node:tls'
import { codeOf } from '../lib/error-codes.ts'
import type { StartTimer } from '../lib/timer.ts'
import { InvalidReplyError, type Reply, ReplyReader } from './reply.ts'

export type SmtpFault = 'unreachable' | 'lost' | 'timed-out' | 'tls' | 'invalid-reply' | 'broken-off'

/** The connection cannot be used any more. The message is a sentence for people. */
export class SmtpConnectionError extends Error {
  override name = 'SmtpConnectionError'
  readonly fault: SmtpFault

  constructor(fault: SmtpFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.fault = fault
  }
}

/** Returns the error of a conversation that this service aborted. */
export function brokenOff(): SmtpConnectionError {
  return new SmtpConnectionError('broken-off', 'The service stopped before the conversation ended.')
}

export type TlsName = {
  /** The name of the server, for which its certificate must be valid. */
  name: string
  /** True: the certificate must be valid. False: any certificate is accepted. */
  mustBeValid: boolean
  /** Additional trusted certificate authorities, PEM. */
  ca: string | undefined
}

export type SmtpTarget = {
  /** An IPv4 or IPv6 address. There is no DNS lookup. */
  address: string
  port: number
  /** TLS from the first byte (RFC 8314 §3); null: the connection begins unencrypted. */
  implicitTls: TlsName | null
  timeoutMs: number
}

/** Maximum unread replies and their characters: more than our longest pipeline can cause. */
const maxUnread = 1000
const maxUnreadLength = 262_144
/** Bytes per write to the socket. Each write has a timeout of its own. */
const blockSize = 65_536

/**
 * One connection to an SMTP server. It sends commands and returns the replies in order. Every failure ends the
 * connection, and every later call throws the same error.
 */
export class SmtpConnection {
  readonly #startTimer: StartTimer
  #socket: Socket
  #reader = new ReplyReader()
  #unread: Reply[] = []
  #unreadLength = 0
  #waiting: { resolve(reply: Reply): void; reject(error: SmtpConnectionError): void } | null = null
  #error: SmtpConnectionError | null = null
  #onUnexpected: (() => void) | null = null
  #closed = Promise.withResolvers<void>()

  private constructor(socket: Socket, startTimer: StartTimer) {
    this.#socket = socket
    this.#startTimer = startTimer
    this.#listen(socket)
  }

  /** Connects. Throws SmtpConnectionError. `signal` aborts it. */
  static async connect(target: SmtpTarget, startTimer: StartTimer, signal: AbortSignal): Promise<SmtpConnection> {
    const { address: host, port, implicitTls, timeoutMs } = target
    if (signal.aborted) throw brokenOff()
    const socket =
      implicitTls === null ? connect({ host, port }) : connectSecurely({ host, port, ...tlsOptions(implicitTls) })
    const connection = new SmtpConnection(socket, startTimer)
    const abort = () => connection.fail(brokenOff())
    signal.addEventListener('abort', abort)
    try {
      await connection.#established(socket, implicitTls === null ? 'connect' : 'secureConnect', timeoutMs)
    } finally {
      signal.removeEventListener('abort', abort)
    }
    socket.setNoDelay(true)
    return connection
  }

  /** The error that ended the connection; null while it can be used. */
  get error(): SmtpConnectionError | null {
    return this.#error
  }

  /** True when the server has a valid certificate for the expected name. */
  get isVerified(): boolean {
    return isSecure(this.#socket) && this.#socket.authorized
  }

  get isSecure(): boolean {
    return isSecure(this.#socket)
  }

  /** Sends one or more commands without waiting. Failures show in the reply. */
  send(text: string): void {
    if (this.#error === null) this.#socket.write(text)
  }

  /**
   * Sends many bytes, and resolves when the operating system has taken them all. Throws SmtpConnectionError, also
   * when a block is not taken within `blockTimeoutMs`.
   */
  async transfer(bytes: Buffer, blockTimeoutMs: number): Promise<void> {
    for (let start = 0; start < bytes.length; start += blockSize) {
      await this.#transferBlock(bytes.subarray(start, start + blockSize), blockTimeoutMs)
    }
  }

  /** Returns the next reply. Throws SmtpConnectionError, also when the reply is not complete after `timeoutMs`. */
  async reply(timeoutMs: number): Promise<Reply> {
    const unread = this.takeUnread()
    if (unread !== null) return unread
    if (this.#error !== null) throw this.#error
    const stopTimer = this.#startTimer(() => this.fail(timedOut(timeoutMs)), timeoutMs)
    const waiting = Promise.withResolvers<Reply>()
    this.#waiting = waiting
    return waiting.promise.finally(stopTimer)
  }

  /** Returns a reply that has arrived already; null: there is none. */
  takeUnread(): Reply | null {
    const reply = this.#unread.shift()
    if (reply === undefined) return null
    this.#unreadLength -= lengthOf(reply)
    return reply
  }

  /**
   * Starts TLS. Discards unread replies that came unencrypted, because an attacker on the network may have injected
   * them (RFC 3207 §6). Throws SmtpConnectionError.
   */
  async startTls(name: TlsName, timeoutMs: number): Promise<void> {
    if (this.#error !== null) throw this.#error
    const plain = this.#socket
    for (const event of ['data', 'error', 'close']) plain.removeAllListeners(event)
    plain.on('error', () => this.fail(lost()))
    this.#reader = new ReplyReader()
    this.#forgetUnread()
    this.#socket = connectSecurely({ socket: plain, host: name.name, ...tlsOptions(name) })
    this.#listen(this.#socket)
    await this.#established(this.#socket, 'secureConnect', timeoutMs)
  }

  /** Sets a callback for the next unsolicited reply or the end of the connection; called once. Null: removes it. */
  onUnexpected(callback: (() => void) | null): void {
    this.#onUnexpected = callback
  }

  /** Sends QUIT, waits up to `timeoutMs` for the reply, and ends the connection. Never throws. */
  async quit(timeoutMs: number): Promise<void> {
    this.#onUnexpected = null
    this.#forgetUnread()
    this.send('QUIT\r\n')
    await this.reply(timeoutMs).catch(() => null)
    this.fail(lost())
  }

  /** Ends the connection at once. */
  fail(error: SmtpConnectionError): void {
    if (this.#error !== null) return
    this.#error = error
    this.#socket.destroy()
    this.#closed.resolve()
    const waiting = this.#waiting
    this.#waiting = null
    waiting?.reject(error)
    this.#tellUnexpected()
  }

  #listen(socket: Socket): void {
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('error', (error) => this.fail(errorOfSocket(error)))
    socket.on('close', () => this.fail(lost()))
  }

  #read(chunk: Buffer): void {
    if (this.#error !== null) return
    try {
      for (const reply of this.#reader.push(chunk)) this.#take(reply)
    } catch (error) {
      if (!(error instanceof InvalidReplyError)) throw error
      this.fail(
        new SmtpConnectionError('invalid-reply', `The server does not speak SMTP: it sent ${error.message}.`, {
          cause: error,
        }),
      )
    }
  }

  #take(reply: Reply): void {
    const waiting = this.#waiting
    if (waiting !== null) {
      this.#waiting = null
      waiting.resolve(reply)
      return
    }
    const length = this.#unreadLength + lengthOf(reply)
    if (this.#unread.length >= maxUnread || length > maxUnreadLength) throw new InvalidReplyError('replies to nothing')
    this.#unread.push(reply)
    this.#unreadLength = length
    this.#tellUnexpected()
  }

  #forgetUnread(): void {
    this.#unread = []
    this.#unreadLength = 0
  }

  #tellUnexpected(): void {
    const tell = this.#onUnexpected
    this.#onUnexpected = null
    tell?.()
  }

  async #established(socket: Socket, event: 'connect' | 'secureConnect', timeoutMs: number): Promise<void> {
    const stopTimer = this.#startTimer(() => this.fail(timedOut(timeoutMs)), timeoutMs)
    try {
      await Promise.race([new Promise<void>((resolve) => socket.once(event, resolve)), this.#closed.promise])
    } finally {
      stopTimer()
    }
    if (this.#error !== null) throw this.#error
  }

  #transferBlock(block: Buffer, timeoutMs: number): Promise<void> {
    if (this.#error !== null) return Promise.reject(this.#error)
    return new Promise((resolve, reject) => {
      const stopTimer = this.#startTimer(() => this.fail(timedOut(timeoutMs)), timeoutMs)
      this.#socket.write(block, (error) => {
        stopTimer()
        if (error === null || error === undefined) resolve()
        else reject(this.#error ?? errorOfSocket(error))
      })
    })
  }
}

function lengthOf({ lines }: Reply): number {
  return lines.reduce((sum, line) => sum + line.length, 0)
}

function isSecure(socket: Socket): socket is TLSSocket {
  return 'encrypted' in socket
}

/** Returns the TLS options. The server name (SNI) must be a host name, not an IP address (RFC 6066 §3). */
function tlsOptions({ name, mustBeValid, ca }: TlsName) {
  return {
    rejectUnauthorized: mustBeValid,
    ...(isIP(name) === 0 && { servername: name }),
    ...(ca !== undefined && { ca }),
  }
}

function lost(): SmtpConnectionError {
  return new SmtpConnectionError('lost', 'The mail server closed the connection.')
}

function timedOut(timeoutMs: number): SmtpConnectionError {
  return new SmtpConnectionError('timed-out', `The mail server did not answer within ${timeoutMs / 1000} seconds.`)
}

const tlsFaults = new Map([
  ['CERT_HAS_EXPIRED', 'its certificate has expired'],
  ['CERT_NOT_YET_VALID', 'its certificate is not valid yet'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'its certificate is self-signed'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'its certificate is not of a known authority'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'its certificate is not of a known authority'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'its certificate is not of a known authority'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'it does not speak TLS'],
])

const tlsCode = /^(ERR_TLS|ERR_SSL|CERT_|EPROTO|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|HOSTNAME_MISMATCH)/

function errorOfSocket(error: Error): SmtpConnectionError {
  const code = codeOf(error)
  if (tlsCode.test(code)) {
    const why = tlsFaults.get(code) ?? `the handshake failed (${code})`
    return new SmtpConnectionError('tls', `No secure connection to the mail server: ${why}.`, { cause: error })
  }
  switch (code) {
    case 'ECONNRESET':
    case 'EPIPE':
    case 'ERR_STREAM_DESTROYED':
      return lost()
    case 'ECONNREFUSED':
      return new SmtpConnectionError('unreachable', 'The mail server refused the connection.', { cause: error })
    default:
      return new SmtpConnectionError('unreachable', 'The mail server could not be reached.', { cause: error })
  }
}
