import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { createTransport } from 'nodemailer'
import { afterEach, expect, test } from 'vitest'
import { systemClock } from '../../server/lib/clock.ts'
import { createLogger } from '../../server/observability/logging.ts'
import {
  listenSmtp,
  type ReceivedMessage,
  type SmtpListener,
  type SmtpListenerOptions,
} from '../../server/smtp-listener/listener.ts'
import { whenClosed } from '../support/sockets.ts'

const listeners: SmtpListener[] = []
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close(0)
})

async function start(options: Partial<SmtpListenerOptions> = {}): Promise<SmtpListener> {
  const listener = await listenSmtp({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'A_PORT',
    name: 'mail.example.com',
    tls: null,
    maxMessageBytes: 10_000_000,
    maxRecipients: 10,
    maxConnections: 10,
    acceptsRecipient: () => true,
    onMessage: async () => undefined,
    clock: systemClock,
    logger: createLogger({ level: 'silent' }),
    ...options,
  })
  listeners.push(listener)
  return listener
}

async function greetingOf(listener: SmtpListener): Promise<{ socket: Socket; greeting: string }> {
  const socket = connect(listener.port, listener.host)
  const [data] = await once(socket, 'data')
  return { socket, greeting: String(data) }
}

/** Says each line when the one before was answered; answers the last answer. */
async function converse(socket: Socket, lines: readonly string[]): Promise<string> {
  let answer = ''
  for (const line of lines) {
    socket.write(`${line}\r\n`)
    answer = String((await once(socket, 'data'))[0])
  }
  return answer
}

const untilData = ['EHLO client.test', 'MAIL FROM:<>', 'RCPT TO:<a@example.org>', 'DATA']

test('connections beyond the limit are told to come again', async () => {
  const listener = await start({ maxConnections: 2 })
  const first = [await greetingOf(listener), await greetingOf(listener)]
  expect(first.map(({ greeting }) => greeting.slice(0, 3))).toEqual(['220', '220'])
  const { greeting, socket } = await greetingOf(listener)
  expect(greeting).toMatch(/^421 /)
  await whenClosed(socket)
})

test('connections of one address beyond its limit are told so, and others are let in again when one is gone', async () => {
  const listener = await start({ connectionLimits: { connectionsPerAddress: 1, connectionsPerMinute: 100 } })
  const { socket } = await greetingOf(listener)
  expect((await greetingOf(listener)).greeting).toMatch(/^421 4\.7\.0 /)
  await converse(socket, ['QUIT'])
  await expect.poll(async () => (await greetingOf(listener)).greeting.slice(0, 3)).toBe('220')
})

test('connections end when their time is over, however busy they look', async () => {
  const listener = await start({ lifetimeMs: 300 })
  const { socket } = await greetingOf(listener)
  const closed = whenClosed(socket)
  // One byte of a command after another, for as long as it is taken.
  const drip = setInterval(() => socket.write('N'), 20)
  await closed
  clearInterval(drip)
})

test('connections that say too much on one line are closed', async () => {
  const { socket } = await greetingOf(await start())
  const closed = whenClosed(socket)
  socket.write('A'.repeat(5_000))
  await closed
})

test('messages that are large wait for one another, small ones do not, and all are taken', async () => {
  const fourInHand = Promise.withResolvers<void>()
  const open = Promise.withResolvers<void>()
  const large: number[] = []
  const listener = await start({
    async onMessage({ content }: ReceivedMessage) {
      if (content.length < 1_000) return
      if (large.push(content.length) === 4) fourInHand.resolve()
      await open.promise
    },
  })
  const { host, port } = listener
  const send = (raw: Buffer) =>
    createTransport({ host, port }).sendMail({ envelope: { from: '', to: 'a@b.test' }, raw })
  const raw = Buffer.alloc(1_200_000, `${'x'.repeat(78)}\r\n`)
  const sending = Array.from({ length: 8 }, () => send(raw))
  await fourInHand.promise
  // If another large message could arrive, it would be there before this one.
  await send(Buffer.from('Subject: Small\r\n\r\n'))
  expect(large).toHaveLength(4)
  open.resolve()
  await Promise.all(sending)
  expect(large).toEqual(Array(8).fill(raw.length))
})

test('messages come without the dots that were stuffed', async () => {
  const contents: Buffer[] = []
  const { host, port } = await start({
    onMessage: async ({ content }) => {
      contents.push(content)
    },
  })
  const raw = Buffer.from(`Subject: Dots\r\n\r\n${'.\r\n..\r\n'.repeat(20_000)}`)
  await createTransport({ host, port }).sendMail({ envelope: { from: '', to: 'a@b.test' }, raw })
  expect(contents.map((content) => content.equals(raw))).toEqual([true])
})

test('messages are handed over up to what is kept of one, and refused beyond the limit', async () => {
  const contents: string[] = []
  const { host, port } = await start({
    maxMessageBytes: 100_000,
    keepBytes: 12,
    onMessage: async ({ content }) => {
      contents.push(content.toString())
    },
  })
  const send = (raw: string) =>
    createTransport({ host, port }).sendMail({ envelope: { from: '', to: 'a@b.test' }, raw })
  await send(`Subject: abcdef\r\n\r\n${'x'.repeat(50_000)}`)
  await expect(send(`Subject: ghijkl\r\n\r\n${'x'.repeat(100_000)}`)).rejects.toMatchObject({ responseCode: 552 })
  expect(contents).toEqual(['Subject: abc'])
})

test('messages that come as the end is called for are taken, and their client is told', async () => {
  const arrived = Promise.withResolvers<void>()
  const kept = Promise.withResolvers<void>()
  const listener = await start({
    async onMessage() {
      arrived.resolve()
      await kept.promise
    },
  })
  const { socket } = await greetingOf(listener)
  await converse(socket, untilData)
  socket.write('Subject: Late\r\n\r\n.\r\n')
  await arrived.promise
  const closing = listener.close(60_000)
  kept.resolve()
  expect(String((await once(socket, 'data'))[0])).toMatch(/^250 /)
  await closing
})

test('messages that never end do not hold up the end', async () => {
  const listener = await start()
  const { socket } = await greetingOf(listener)
  await converse(socket, untilData)
  socket.write('Subject: Endless\r\n\r\n')
  const closed = whenClosed(socket)
  await listener.close(50)
  await closed
})

test('what else servers do is not done', async () => {
  const { socket } = await greetingOf(await start())
  expect(await converse(socket, ['EHLO client.test'])).not.toMatch(/AUTH|STARTTLS|XCLIENT|VRFY/)
  for (const command of [
    'AUTH PLAIN AGEAYg==',
    'STARTTLS',
    'VRFY ada',
    'EXPN list',
    'XCLIENT ADDR=192.0.2.1',
    'WIZ x',
  ]) {
    expect(await converse(socket, [command])).toMatch(/^5\d\d /)
  }
})

// RFC 5321 §4.5.1: without a domain, in any letter case.
test.each(['postmaster', 'Postmaster', 'POSTMASTER'])('<%s> alone is the postmaster of this host', async (name) => {
  const taken: ReceivedMessage[] = []
  const listener = await start({
    acceptsRecipient: (address) => address.toLowerCase() === 'postmaster@mail.example.com',
    onMessage: async (message) => void taken.push(message),
  })
  const { socket } = await greetingOf(listener)
  const first = ['EHLO client.test', 'MAIL FROM:<>']
  expect(await converse(socket, [...first, `RCPT TO:<${name}>`])).toMatch(/^250 /)
  expect(await converse(socket, [`rcpt to: <${name}> NOTIFY=NEVER`])).toMatch(/^250 /)
  for (const other of ['abuse', 'postmaster2', `${name}@`]) {
    expect(await converse(socket, [`RCPT TO:<${other}>`])).toMatch(/^501 /)
  }
  expect(await converse(socket, ['DATA', 'Subject: Help\r\n\r\n.'])).toMatch(/^250 /)
  expect(taken[0]?.recipients.map((address) => address.toLowerCase())).toContain('postmaster@mail.example.com')
})
