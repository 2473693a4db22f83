import type { Socket } from 'node:net'

/** Maximum size of one interim response. Bytes. */
const maxInterimBytes = 16 * 1024
/** Maximum number of interim responses before a response. */
export const maxInterimAnswers = 32

/** Matches the start of an interim response. 101 is excluded: it ends the exchange. */
const interimStart = /^HTTP\/1\.[01] 1(?!01)\d\d[ \r]/
const exampleStart = 'HTTP/1.1 100 '
const endOfHead = Buffer.from('\r\n\r\n')

/**
 * Watches the beginning of each response on one connection, before the HTTP parser sees it.
 *
 * It removes up to 32 interim responses: a client must accept them even if it did not ask for them (RFC 9110 §15.2).
 * undici ends the connection at a `100 Continue`, and reads any number of the others. It also keeps the first bytes of
 * the response, to say what is wrong with a response that the parser rejects.
 */
export class AnswerBeginning {
  #state: 'matching' | 'skipping' | 'passing' = 'passing'
  #held: Buffer | undefined
  #first: Buffer | undefined
  #interimAnswers = 0

  /** Call it when a request was sent: the next bytes begin a response. */
  expect(): void {
    this.#state = 'matching'
    this.#interimAnswers = 0
    this.forget()
  }

  /** Forgets the first bytes, after the response was read. */
  forget(): void {
    this.#held = undefined
    this.#first = undefined
  }

  /** The first bytes of the response, as received. Empty: none have arrived. */
  get first(): Buffer {
    return this.#first ?? Buffer.alloc(0)
  }

  /** Returns the bytes that the parser should see. Null: none yet. */
  pass(chunk: Buffer): Buffer | null {
    if (this.#state === 'passing') return chunk
    let bytes = this.#held === undefined ? chunk : Buffer.concat([this.#held, chunk])
    this.#held = undefined
    // A loop, since a chunk can hold thousands of interim responses.
    while (bytes.length > 0) {
      if (this.#state === 'matching') {
        const start = bytes.toString('latin1', 0, exampleStart.length)
        if (!interimStart.test(start + exampleStart.slice(start.length))) return this.#letPass(bytes)
        if (start.length < exampleStart.length) return this.#hold(bytes)
        if (this.#interimAnswers === maxInterimAnswers) return this.#letPass(bytes)
        this.#state = 'skipping'
      }
      const end = bytes.indexOf(endOfHead)
      if (end === -1) return bytes.length > maxInterimBytes ? this.#letPass(bytes) : this.#hold(bytes)
      this.#interimAnswers++
      this.#state = 'matching'
      bytes = bytes.subarray(end + endOfHead.length)
    }
    return null
  }

  #hold(bytes: Buffer): null {
    this.#held = bytes
    return null
  }

  #letPass(bytes: Buffer): Buffer {
    this.#state = 'passing'
    this.#first = bytes
    return bytes
  }
}

/** Passes everything that is read from a socket through `beginning`. */
export function watchReads(socket: Socket, beginning: AnswerBeginning): void {
  const read = socket.read.bind(socket)
  socket.read = (size?: number) => {
    for (;;) {
      const chunk: Buffer | null = read(size)
      const passed = chunk === null ? null : beginning.pass(chunk)
      if (chunk === null || passed !== null) return passed
    }
  }
}

/** Returns the status in the first bytes of a response, even if its headers are invalid. Null: there is none. */
export function statusOf(first: Buffer): number | null {
  const [, status] = /^HTTP\/1\.[01] ([2-5]\d\d)[ \r\n]/.exec(first.toString('latin1', 0, 16)) ?? []
  return status === undefined ? null : Number(status)
}

/**
 * Returns what is contradictory about the length of the body in the headers of a response (RFC 9112 §6.3). Null:
 * nothing.
 */
export function lengthFaultOf(first: Buffer): string | null {
  const [head = ''] = first.toString('latin1').split('\r\n\r\n', 1)
  const names = head
    .split('\r\n')
    .slice(1)
    .map((line) => line.slice(0, Math.max(line.indexOf(':'), 0)).toLowerCase())
  const lengths = names.filter((name) => name === 'content-length').length
  if (lengths > 0 && names.includes('transfer-encoding')) return 'it has both Content-Length and Transfer-Encoding'
  return lengths > 1 ? 'it has more than one Content-Length' : null
}
