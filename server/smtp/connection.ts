import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSecurely, type TLSSocket } from 'node:tls'
import type { StartTimer } from '../lib/timer.ts'
import { InvalidReplyError, type Reply, ReplyReader } from './reply.ts'

export type SmtpFault = 'unreachable' | 'lost' | 'timed-out' | 'tls' | 'invalid-reply' | 'broken-off'

/** A connection that cannot be used any more. The message is a sentence for people. */
export class SmtpConnectionError extends Error {
  override name = 'LineError'
  readonly fault: SmtpFault

  constructor(fault: SmtpFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.fault = fault
  }
}

/** The error of a conversation that the service itself gave up. */
export function brokenOff(): SmtpConnectionError {
  return new SmtpConnectionError('broken-off', 'The service stopped before the conversation ended.')
}

export type TlsName = {
  /** Of the server, as its certificate must have it. */
  name: string
  /** Whether the certificate must be valid. Else it is only looked at. */
  mustBeValid: boolean
  /** Authorities trusted beside the usual ones, PEM. */
  ca: string | undefined
}

export type SmtpTarget = {
  /** An IPv4 or IPv6 address: nothing is looked up. */
  address: string
  port: number
  /** Speaks TLS from the first byte (RFC 8314 §3); null: in the clear at first. */
  implicitTls: TlsName | null
  timeoutMs: number
}

/** Replies nobody waits for, and characters in them: more than the longest pipeline of ours can have. */
const maxUnread = 1000
const maxUnreadLength = 262_144
/** Bytes handed to the system at a time; each piece has the time of a block. */
const blockSize = 65_536

/**
 * One connection to an SMTP server: what is said, and the replies in their order. Every failure ends it, and
 * is what everything after it throws.
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

  /** Connects. Throws LineError; `signal` breaks it off. */
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

  /** Null while it can be used. */
  get error(): SmtpConnectionError | null {
    return this.#error
  }

  /** Whether the other side has shown a valid certificate of the name that was expected. */
  get isVerified(): boolean {
    return isSecure(this.#socket) && this.#socket.authorized
  }

  get isSecure(): boolean {
    return isSecure(this.#socket)
  }

  /** Says something, such as a command or several; how that went is told by the reply. */
  send(text: string): void {
    if (this.#error === null) this.#socket.write(text)
  }

  /**
   * Sends much; resolves when the system has taken all of it. Throws LineError when it could not be, also
   * when the other side takes no byte for `blockTimeoutMs`.
   */
  async transfer(bytes: Buffer, blockTimeoutMs: number): Promise<void> {
    for (let start = 0; start < bytes.length; start += blockSize) {
      await this.#transferBlock(bytes.subarray(start, start + blockSize), blockTimeoutMs)
    }
  }

  /** The next reply. Throws LineError, also when it is not complete after `timeoutMs`. */
  async reply(timeoutMs: number): Promise<Reply> {
    const unread = this.takeUnread()
    if (unread !== null) return unread
    if (this.#error !== null) throw this.#error
    const stopTimer = this.#startTimer(() => this.fail(timedOut(timeoutMs)), timeoutMs)
    const waiting = Promise.withResolvers<Reply>()
    this.#waiting = waiting
    return waiting.promise.finally(stopTimer)
  }

  /** A reply that has come already; null without one. */
  takeUnread(): Reply | null {
    const reply = this.#unread.shift()
    if (reply === undefined) return null
    this.#unreadLength -= lengthOf(reply)
    return reply
  }

  /**
   * Begins TLS. Whatever came in the clear and is not read yet is forgotten: somebody on the way may have put
   * it there (RFC 3207 §6). Throws LineError.
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

  /** Calls back once when anything comes, or the connection ends, that nobody waits for. Null: no more. */
  onUnexpected(callback: (() => void) | null): void {
    this.#onUnexpected = callback
  }

  /** Says QUIT, waits for the answer, at most for `timeoutMs`, and ends the connection. Never throws. */
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

/** Names of servers are told in the clear only if they are names (RFC 6066 §3). */
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
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
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
