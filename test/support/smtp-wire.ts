import { once } from 'node:events'
import type { Socket } from 'node:net'
import { TLSSocket, type TlsOptions } from 'node:tls'

/** The server's side of one SMTP connection: lines and messages in, bytes out. */
export class SmtpWire {
  readonly #plain: Socket
  #socket: Socket
  #bytes: Buffer = Buffer.alloc(0)
  #isEnded = false
  #wake: (() => void) | null = null

  constructor(socket: Socket) {
    this.#plain = socket
    this.#socket = socket
    this.#listen()
  }

  get isSecure(): boolean {
    return this.#socket instanceof TLSSocket
  }

  /** The next line without its end; null when there will be none. */
  line(): Promise<string | null> {
    return this.#until('\r\n').then((bytes) => bytes?.toString('utf8') ?? null)
  }

  /** A message without its end and without the dots that were put in; null when it does not come whole. */
  async message(): Promise<Buffer | null> {
    const first = await this.#until('\r\n', 0)
    if (first === null) return null
    if (first.toString('latin1') === '.') return Buffer.alloc(0)
    const rest = await this.#until('\r\n.\r\n')
    if (rest === null) return null
    const text = Buffer.concat([first, Buffer.from('\r\n'), rest, Buffer.from('\r\n')]).toString('latin1')
    return Buffer.from(text.replace(/^\./gm, ''), 'latin1')
  }

  /** Resolves when there is something to read. False: there will be nothing. */
  async readable(): Promise<boolean> {
    while (this.#bytes.length === 0 && !this.#isEnded) await this.#more()
    return this.#bytes.length > 0
  }

  write(text: string): void {
    if (!this.#socket.destroyed) this.#socket.write(text)
  }

  drop(): void {
    // Written bytes are still sent; incoming ones are not read any more.
    this.#socket.destroySoon()
  }

  reset(): void {
    // Below TLS, which knows no such thing.
    if (this.#plain instanceof TLSSocket) this.#plain.destroy()
    else this.#plain.resetAndDestroy()
  }

  async startTls(options: TlsOptions): Promise<void> {
    this.#socket.removeAllListeners('data')
    this.#bytes = Buffer.alloc(0)
    const secure = new TLSSocket(this.#socket, { ...options, isServer: true })
    this.#socket = secure
    this.#listen()
    await once(secure, 'secure').catch(() => undefined)
  }

  #listen(): void {
    this.#socket.on('data', (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk])
      this.#wakeUp()
    })
    for (const event of ['error', 'close']) {
      this.#socket.on(event, () => {
        this.#isEnded = true
        this.#wakeUp()
      })
    }
  }

  /** Returns the bytes before `end`, and takes `end` too. `keep`: how many bytes of `end` stay to be read. */
  async #until(end: string, keep = 0): Promise<Buffer | null> {
    for (;;) {
      const at = this.#bytes.indexOf(end)
      if (at >= 0) {
        const taken = this.#bytes.subarray(0, at)
        this.#bytes = this.#bytes.subarray(at + end.length - keep)
        return taken
      }
      if (this.#isEnded) return null
      await this.#more()
    }
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #wakeUp(): void {
    const wake = this.#wake
    this.#wake = null
    wake?.()
  }
}
