import type { Socket } from 'node:net'

/** How long one interim answer may be. Bytes. */
const maxInterimBytes = 16 * 1024
/** How many of them may precede an answer. */
export const maxInterimAnswers = 32

/** The start of an interim answer. 101 is none: it ends the exchange. */
const interimStart = /^HTTP\/1\.[01] 1(?!01)\d\d[ \r]/
const exampleStart = 'HTTP/1.1 100 '
const endOfHead = Buffer.from('\r\n\r\n')

/**
 * Watches the beginning of each answer on one connection, before the HTTP parser sees it.
 *
 * It drops the interim answers before it, 32 at most: a client has to accept those it did not ask for
 * (RFC 9110 §15.2). At a `100 Continue` undici ends the connection instead, and of the others it reads any
 * number. And it remembers how the answer began, to say what is wrong with one that the parser refuses.
 */
export class AnswerBeginning {
  #state: 'matching' | 'skipping' | 'passing' = 'passing'
  #held: Buffer | undefined
  #first: Buffer | undefined
  #interimAnswers = 0

  /** A request was sent: the next bytes begin an answer. */
  expect(): void {
    this.#state = 'matching'
    this.#interimAnswers = 0
    this.forget()
  }

  /** The answer was read: nothing of it is kept. */
  forget(): void {
    this.#held = undefined
    this.#first = undefined
  }

  /** The first bytes of the answer, as they came from the network; empty before any have come. */
  get first(): Buffer {
    return this.#first ?? Buffer.alloc(0)
  }

  /** Returns what the parser is to see of `chunk`; null when there is nothing yet. */
  pass(chunk: Buffer): Buffer | null {
    if (this.#state === 'passing') return chunk
    let bytes = this.#held === undefined ? chunk : Buffer.concat([this.#held, chunk])
    this.#held = undefined
    // A loop: a chunk can hold thousands of interim answers.
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

/** Has everything that is read from a socket go through `beginning`. */
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

/** The status in the first bytes of an answer, also of one whose headers are not valid; null without one. */
export function statusOf(first: Buffer): number | null {
  const [, status] = /^HTTP\/1\.[01] ([2-5]\d\d)[ \r\n]/.exec(first.toString('latin1', 0, 16)) ?? []
  return status === undefined ? null : Number(status)
}

/**
 * What contradicts itself in the headers at the beginning of an answer, about the length of its body
 * (RFC 9112 §6.3); null when nothing does.
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
