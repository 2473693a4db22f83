import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type MailSink, startMailSink } from '../../scripts/bench/mail.ts'
import { createProcesses, type Processes } from '../../scripts/bench/processes.ts'

let processes: Processes
let sink: MailSink
let socket: Socket
let lines: AsyncIterator<string>

beforeEach(async () => {
  processes = createProcesses()
  sink = await startMailSink(processes)
  socket = connect({ port: sink.port, host: '127.0.0.1', noDelay: true })
  lines = createInterface(socket)[Symbol.asyncIterator]()
})

afterEach(async () => {
  socket.destroy()
  await processes[Symbol.asyncDispose]()
})

/** The next so many lines of answers. */
async function answers(count: number): Promise<string[]> {
  const found: string[] = []
  while (found.length < count) found.push((await lines.next()).value)
  return found
}

const envelope = 'MAIL FROM:<a@sender.example>\r\nRCPT TO:<b@recipients.example>\r\nDATA\r\n'
const message = 'Subject: Hello\r\n\r\nHello.\r\n..\r\nBye'

test('the mail sink takes messages, whatever parts they come in', async () => {
  expect(await answers(1)).toEqual(['220 sink.test ESMTP'])
  const all = `EHLO client.example\r\n${envelope}${message}\r\n.\r\n${envelope}${message}\r\n.\r\nQUIT\r\n`
  for (const [at, character] of [...all].entries()) {
    socket.write(character)
    // A part of its own, now and then.
    if (at % 7 === 0) await new Promise(setImmediate)
  }
  expect(await answers(13)).toEqual([
    '250-sink.test',
    '250-PIPELINING',
    '250-8BITMIME',
    '250 ENHANCEDSTATUSCODES',
    ...['250 2.1.0 OK', '250 2.1.5 OK', '354 Go ahead', '250 2.0.0 Taken'],
    ...['250 2.1.0 OK', '250 2.1.5 OK', '354 Go ahead', '250 2.0.0 Taken'],
    '221 2.0.0 Goodbye',
  ])
  expect(await sink.count()).toBe(2)
  expect(await sink.messages()).toEqual({ meanBytes: message.length, sample: message })
})

test('the mail sink answers no message while it is held, and all when it is released', async () => {
  await sink.hold()
  socket.write(`${envelope}${message}\r\n.\r\n`)
  expect(await answers(4)).toEqual(['220 sink.test ESMTP', '250 2.1.0 OK', '250 2.1.5 OK', '354 Go ahead'])
  expect(await sink.count()).toBe(0)
  const until = sink.until(1)
  await sink.release()
  await until
  expect(await answers(1)).toEqual(['250 2.0.0 Taken'])

  await sink.reset()
  expect(await sink.count()).toBe(0)
})
