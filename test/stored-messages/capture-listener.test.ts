import { once } from 'node:events'
import { connect as connectSocket, type Socket } from 'node:net'
import { createTransport, type Transporter } from 'nodemailer'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { connect } from '../../server/database/connection.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { OperatorError } from '../../server/shared/errors.ts'
import { newId } from '../../server/shared/ids.ts'
import { type CaptureSink, startCaptureSink } from '../../server/stored-messages/capture-listener.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'
import { whenClosed } from '../support/sockets.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

let database: TestDatabase
let sink: CaptureSink
let transport: Transporter
let accountId: string

const tokens = createMailTokens(Buffer.alloc(32, 7))
const readReturnPath = (address: string) => tokens.readReturnPath(address)?.emailId ?? null
const returnPathOf = (emailId: string) => tokens.returnPath({ emailId, position: null }, 'send.example.com')
const logger = createLogger({ level: 'silent' })

beforeAll(async () => {
  database = await createTestDatabase()
  accountId = await seedAccount(database.db, new Date())
  sink = await startCaptureSink({ db: database.db, port: 0, clock: systemClock, logger, readReturnPath })
  transport = createTransport({ host: sink.host, port: sink.port, pool: true, maxConnections: 5 })
})
beforeEach(() => database.db.deleteFrom('captured_messages').execute())
afterAll(async () => {
  transport.close()
  await sink.close(1_000)
  await database.drop()
})

const captured = () => database.db.selectFrom('captured_messages').selectAll().orderBy('id').execute()

function send(message: { from: string; to: string[]; raw: string | Buffer }) {
  return transport.sendMail({ envelope: { from: message.from, to: message.to }, raw: message.raw })
}

test('a message is kept byte for byte, for the email and the account of its return path', async () => {
  const emailId = await seedEmail(database.db, { accountId, at: new Date(), to: ['ada@example.org'] })
  const content = Buffer.from('Subject: Grüße\r\n\r\n.a dot\r\n..two\r\nNUL \0 and \xff\r\n', 'latin1')
  await send({
    from: returnPathOf(emailId),
    to: ['ada@example.org', '"o,b"@example.org', '"a..b."@xn--bcher-kva.example'],
    raw: content,
  })
  expect(await captured()).toMatchObject([
    {
      account_id: accountId,
      email_id: emailId,
      mail_from: returnPathOf(emailId),
      recipients: ['ada@example.org', '"o,b"@example.org', '"a..b."@bücher.example'],
      content,
    },
  ])
})

test('a message of another program is kept for the first account there is', async () => {
  await seedAccount(database.db, new Date())
  await send({ from: '', to: ['ada@example.org'], raw: 'Subject: Hello\r\n\r\nHello\r\n' })
  expect(await captured()).toMatchObject([{ account_id: accountId, email_id: null, mail_from: '' }])
})

test('a message of an email that is gone is kept for nobody: whose it was is not known any more', async () => {
  const from = returnPathOf(newId('email', new Date()))
  await send({ from, to: ['ada@example.org'], raw: 'Subject: Hello\r\n\r\nHello\r\n' })
  expect(await captured()).toMatchObject([{ account_id: null, mail_from: from }])
})

test('a message of several megabytes is kept whole', async () => {
  const content = Buffer.concat([
    Buffer.from('Subject: Large\r\n\r\n'),
    Buffer.alloc(5_000_000, `${'x'.repeat(76)}\r\n`),
    Buffer.from('\r\n'),
  ])
  await send({ from: '', to: ['ada@example.org'], raw: content })
  const [message] = await captured()
  expect(message?.content.equals(content)).toBe(true)
})

test('many at once are all kept, each with its own bytes', async () => {
  const emailIds = await Promise.all(
    Array.from({ length: 3 }, () => seedEmail(database.db, { accountId, at: new Date(), to: ['ada@example.org'] })),
  )
  const bodies = Array.from({ length: 200 }, (_, index) => `Subject: ${index}\r\n\r\n${'x'.repeat(index * 7)}\r\n`)
  await Promise.all(
    bodies.map((raw, index) => send({ from: returnPathOf(emailIds[index % 3] ?? ''), to: ['a@example.org'], raw })),
  )
  const messages = await captured()
  expect(messages.map(({ content }) => content.toString()).sort()).toEqual([...bodies].sort())
  for (const { content, email_id } of messages) {
    const index = Number(/^Subject: (\d+)/.exec(content.toString())?.[1])
    expect(email_id).toBe(emailIds[index % 3])
  }
})

test('a message is not taken without the database, and the client told to come again; then it is', async () => {
  const url = new URL(database.connectionString)
  await using line = await startTcpProxy({ host: url.hostname, port: Number(url.port || 5432) })
  url.host = `127.0.0.1:${line.port}`
  const db = connect({ connectionString: url.toString(), max: 2, onError: () => undefined })
  const cutOff = await startCaptureSink({ db, port: 0, clock: systemClock, logger, readReturnPath })
  const client = createTransport({ host: cutOff.host, port: cutOff.port })
  const message = { envelope: { from: '', to: ['a@example.org'] }, raw: 'Subject: Later\r\n\r\n' }
  await line.cut()
  await expect(client.sendMail(message)).rejects.toMatchObject({ responseCode: 451 })
  await line.mend()
  await client.sendMail(message)
  expect(await captured()).toHaveLength(1)
  await cutOff.close(1_000)
  await db.destroy()
})

test('a client that goes in the middle of a message leaves nothing, and does not hold up the end', async () => {
  const own = await startCaptureSink({ db: database.db, port: 0, clock: systemClock, logger, readReturnPath })
  const socket = connectSocket(own.port, own.host)
  await converse(socket, ['EHLO client.test', 'MAIL FROM:<>', 'RCPT TO:<a@example.org>', 'DATA'])
  socket.write('Subject: Half\r\n\r\nhal')
  socket.destroy()
  await own.close(60_000)
  expect(await captured()).toEqual([])
})

test('a client that idles does not hold up the end', async () => {
  const own = await startCaptureSink({ db: database.db, port: 0, clock: systemClock, logger, readReturnPath })
  const socket = connectSocket(own.port, own.host)
  await converse(socket, ['EHLO client.test'])
  const closed = whenClosed(socket)
  await own.close(60_000)
  await closed
})

test('a port that is taken is an error that names the setting', async () => {
  const starting = startCaptureSink({ db: database.db, port: sink.port, clock: systemClock, logger, readReturnPath })
  await expect(starting).rejects.toThrow(OperatorError)
  await expect(starting).rejects.toThrow('CAPTURE_SMTP_PORT')
})

/** Says each line when the one before was answered. */
async function converse(socket: Socket, lines: readonly string[]): Promise<void> {
  await once(socket, 'data')
  for (const line of lines) {
    socket.write(`${line}\r\n`)
    await once(socket, 'data')
  }
}
