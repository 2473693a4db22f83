import { createServer, type Socket } from 'node:net'
import { z } from 'zod'
import { handler, serve } from './serve.ts'

/*
 * A mail server that accepts everything and stores nothing. It supports only what pipelining clients need, so that it
 * uses little CPU time (RFC 5321, RFC 2920).
 */

const replies: Readonly<Record<string, string>> = {
  EHLO: '250-sink.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n',
  MAIL: '250 2.1.0 OK\r\n',
  RCPT: '250 2.1.5 OK\r\n',
  DATA: '354 Go ahead\r\n',
  RSET: '250 2.0.0 OK\r\n',
  NOOP: '250 2.0.0 OK\r\n',
  QUIT: '221 2.0.0 Goodbye\r\n',
}
const taken = '250 2.0.0 Taken\r\n'
const unknownCommand = '500 5.5.2 What?\r\n'

const lineEnd = Buffer.from('\r\n')
const endOfData = Buffer.from('\r\n.\r\n')

let count = 0
let bytes = 0
/** When the last message began, with its MAIL command: milliseconds since the epoch. */
let lastBegunAt = 0
/** The first message since the reset. */
let sample: string | null = null
let waiting: { count: number; reached: () => void }[] = []
/** Functions that continue the sessions on hold; null: nothing is on hold. */
let held: Set<() => void> | null = null

function take(message: Buffer): void {
  count += 1
  bytes += message.length
  sample ??= message.toString('latin1')
  if (!waiting.some((one) => one.count <= count)) return
  const reached = waiting.filter((one) => one.count <= count)
  waiting = waiting.filter((one) => one.count > count)
  for (const one of reached) one.reached()
}

function talk(socket: Socket): void {
  let rest: Buffer = Buffer.alloc(0)
  let inData = false

  function goOn(): void {
    let reply = ''
    for (;;) {
      const mark = inData ? endOfData : lineEnd
      const at = rest.indexOf(mark)
      if (at < 0) break
      if (inData && held !== null) {
        held.add(goOn)
        break
      }
      const part = rest.subarray(0, at)
      rest = rest.subarray(at + mark.length)
      if (inData) {
        inData = false
        take(part)
        reply += taken
        continue
      }
      const command = part.toString('latin1', 0, 4).toUpperCase()
      inData = command === 'DATA'
      if (command === 'MAIL') lastBegunAt = Date.now()
      reply += replies[command] ?? unknownCommand
    }
    if (reply !== '') socket.write(reply)
  }

  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    goOn()
  })
  socket.write('220 sink.test ESMTP\r\n')
}

function release(): void {
  const all = held ?? []
  held = null
  for (const goOn of all) goOn()
}

const server = createServer(talk)
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the sink has no port')
  serve({
    port: handler(z.null(), () => address.port),
    reset: handler(z.null(), () => {
      count = 0
      bytes = 0
      sample = null
      waiting = []
    }),
    count: handler(z.null(), () => count),
    until: handler(z.int(), async (wanted) => {
      if (count >= wanted) return
      await new Promise<void>((reached) => {
        waiting.push({ count: wanted, reached })
      })
    }),
    // Mean bytes of a message, and the first message with its dot-stuffing.
    messages: handler(z.null(), () => ({ meanBytes: bytes / count, sample })),
    lastBegunAt: handler(z.null(), () => lastBegunAt),
    hold: handler(z.null(), () => {
      held ??= new Set()
    }),
    release: handler(z.null(), release),
  })
})
