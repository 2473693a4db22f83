import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { join } from 'node:path'
import { createTransport, type SentMessageInfo } from 'nodemailer'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startInboundListener } from '../../server/bounces/start.ts'
import { connect, type Db } from '../../server/database/connection.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { addressKey } from '../../server/message/address.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { OperatorError } from '../../server/shared/errors.ts'
import { newId } from '../../server/shared/ids.ts'
import type { SmtpListener } from '../../server/smtp-listener/listener.ts'
import { createInboundMessageService } from '../../server/stored-messages/service.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'
import { live } from '../support/scope.ts'
import { whenClosed } from '../support/sockets.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

const tokens = createMailTokens(Buffer.alloc(32, 7))
const host = 'send.example.com'
const certificates = join(import.meta.dirname, '..', 'support', 'tls')
const tls = { certFile: join(certificates, 'valid.pem'), keyFile: join(certificates, 'key.pem') }

let database: TestDatabase
let db: Db
let accountId: string
let registry: Registry
let listener: SmtpListener

function start(options: { db?: Db; tls?: typeof tls | null } = {}): Promise<SmtpListener> {
  return startInboundListener({
    db: options.db ?? db,
    host: '127.0.0.1',
    port: 0,
    tls: options.tls ?? null,
    hostname: 'mail.example.com',
    tokens,
    keyOf: addressKey,
    clock: systemClock,
    outbox: createOutbox({ clock: systemClock, wake: () => undefined }),
    registry: options.db === undefined && options.tls === undefined ? registry : new Registry(),
    onFact: () => undefined,
    logger: createLogger({ level: 'silent' }),
  })
}

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  accountId = await seedAccount(db, new Date())
  registry = new Registry()
  listener = await start()
})
beforeEach(async () => {
  await db.deleteFrom('inbound_messages').execute()
  registry.resetMetrics()
})
afterAll(async () => {
  await listener.close(1_000)
  await database.drop()
})

/** An email that the recipients' servers have taken. */
async function sentTo(...to: string[]): Promise<string> {
  const emailId = await seedEmail(db, { accountId, at: new Date(), to })
  await db.updateTable('email_recipients').set({ status: 'accepted' }).where('email_id', '=', emailId).execute()
  return emailId
}

const returnPath = (emailId: string, position: number | null = null) => tokens.returnPath({ emailId, position }, host)
const corpus = (name: string) => readFileSync(join(import.meta.dirname, 'corpus', `${name}.eml`), 'utf8')

type Mail = { to: string | string[]; raw: string | Buffer; via?: { port: number }; options?: object }

/** Hands a message over as a mail server does. */
async function send({ to, raw, via = listener, options = {} }: Mail): Promise<SentMessageInfo> {
  const client = createTransport({ host: '127.0.0.1', port: via.port, ignoreTLS: true, ...options })
  return client.sendMail({ envelope: { from: '', to }, raw })
}

const statusesOf = async (emailId: string) => {
  const rows = await db
    .selectFrom('email_recipients')
    .select('status')
    .where('email_id', '=', emailId)
    .orderBy('position')
    .execute()
  return rows.map(({ status }) => status)
}

const eventsOf = async (emailId: string) => {
  const rows = await db.selectFrom('events').select(['type', 'body']).orderBy('id').execute()
  return rows.filter(({ body }) => body.includes(emailId)).map(({ type }) => type)
}

const counted = async (kind: string) => {
  const metric = await registry.getSingleMetric('postern_inbound_messages_total')?.get()
  return metric?.values.find(({ labels }) => labels.kind === kind)?.value ?? 0
}

describe('a notification', () => {
  test('a notification is written down once, however often it comes', async () => {
    const emailId = await sentTo('ada@example.org')
    for (let time = 0; time < 2; time++) await send({ to: returnPath(emailId), raw: corpus('postfix-user-unknown') })
    expect(await statusesOf(emailId)).toEqual(['bounced'])
    expect(await eventsOf(emailId)).toEqual(['email.bounced'])
    const suppressed = await db.selectFrom('suppressions').selectAll().where('email_id', '=', emailId).execute()
    expect(suppressed).toMatchObject([{ address: 'ada@example.org', reason: 'hard_bounce' }])
    expect(await counted('dsn')).toBe(2)
  })

  test('a notification changes those it names, and no other', async () => {
    const emailId = await sentTo('eve@example.org', 'ada@example.org', 'bob@example.net')
    await send({ to: returnPath(emailId), raw: corpus('postfix-two-recipients') })
    expect(await statusesOf(emailId)).toEqual(['accepted', 'bounced', 'bounced'])
  })

  test('a notification of the copy of one recipient changes nobody else, whoever it names', async () => {
    const emailId = await sentTo('eve@example.org', 'ada@example.org', 'bob@example.net')
    await send({ to: returnPath(emailId, 0), raw: corpus('postfix-two-recipients') })
    expect(await statusesOf(emailId)).toEqual(['bounced', 'accepted', 'accepted'])
    const complaint = corpus('arf-yahoo').replace('token0123456789', tokens.copy({ emailId, position: 2 }))
    await send({ to: returnPath(emailId, 0), raw: complaint.replaceAll('ada@', 'eve@') })
    expect(await statusesOf(emailId)).toEqual(['bounced', 'accepted', 'complained'])
  })

  test('a notification comes back whatever the letter case of the address, and from any host', async () => {
    const emailId = await sentTo('ada@example.org')
    const to = tokens.returnPath({ emailId, position: null }, 'mail.elsewhere.example').toUpperCase()
    await send({ to, raw: corpus('dovecot-delivered') })
    expect(await statusesOf(emailId)).toEqual(['delivered'])
  })

  test('a notification is of the email whose token is in the message that came back', async () => {
    const [forwarder, emailId] = [await sentTo('postmaster@relay.example'), await sentTo('ada@example.org')]
    const raw = corpus('forwarded').replace('token0123456789', tokens.copy({ emailId, position: null }))
    await send({ to: returnPath(forwarder), raw })
    expect(await statusesOf(emailId)).toEqual(['bounced'])
    expect(await statusesOf(forwarder)).toEqual(['accepted'])
  })

  test('a notification that carries the token of nobody is of the email it came back to', async () => {
    const emailId = await sentTo('ada@example.org')
    await send({ to: returnPath(emailId), raw: corpus('forwarded') })
    expect(await statusesOf(emailId)).toEqual(['bounced'])
  })

  test('a notification of a complaint finds the recipient by the unsubscribe link in their copy', async () => {
    const emailId = await sentTo('eve@example.org', 'ada@example.org')
    const token = tokens.unsubscribe({ emailId, position: 1, accountId, address: `${'a'.repeat(60)}@example.org` })
    const raw = corpus('arf-redacted').replace('unsubscribe-token_1', token)
    await send({ to: returnPath(emailId), raw })
    expect(await statusesOf(emailId)).toEqual(['accepted', 'complained'])
    expect(await eventsOf(emailId)).toEqual(['email.complained'])
  })

  test('a notification of an email that is gone is taken and forgotten', async () => {
    await send({ to: returnPath(newId('email', new Date())), raw: corpus('qmail') })
    expect(await counted('gone')).toBe(1)
    expect(await db.selectFrom('inbound_messages').select('id').execute()).toEqual([])
  })

  test('a notification may carry a long message back behind it', async () => {
    const emailId = await sentTo('ada@example.org')
    const original = Buffer.alloc(15_000_000, `${'x'.repeat(76)}\r\n`)
    await send({ to: returnPath(emailId), raw: Buffer.concat([Buffer.from(corpus('qmail')), original]) })
    expect(await statusesOf(emailId)).toEqual(['bounced'])
  })

  test.each(['vacation', 'read-receipt', 'arf-not-spam'])('%s is counted, and changes nothing', async (name) => {
    const emailId = await sentTo('ada@example.org')
    await send({ to: returnPath(emailId), raw: corpus(name) })
    expect(await statusesOf(emailId)).toEqual(['accepted'])
    expect(await counted('auto-reply')).toBe(1)
    expect(await db.selectFrom('inbound_messages').select('id').execute()).toEqual([])
  })
})

describe('a mailbox that is of no email', () => {
  const fbl = 'FBL@Mail.Example.com'

  test.each(['arf-yahoo', 'arf-redacted'])(
    'a mailbox that is of no email takes %s by the token in it',
    async (name) => {
      const emailId = await sentTo('eve@example.org', 'ada@example.org')
      const raw = corpus(name).replace('token0123456789', tokens.copy({ emailId, position: 1 }))
      await send({ to: fbl, raw })
      expect(await statusesOf(emailId)).toEqual(['accepted', 'complained'])
    },
  )

  test.each(['return-path-only', 'arf-microsoft-jmrp'])(
    'a mailbox that is of no email takes %s by the return path in it',
    async (name) => {
      const emailId = await sentTo('eve@example.org', 'ada@example.org')
      await send({ to: fbl, raw: corpus(name).replaceAll('b.token@send.example.com', returnPath(emailId, 1)) })
      expect(await statusesOf(emailId)).toEqual(['accepted', 'complained'])
    },
  )

  test('a mailbox that is of no email keeps what is of no email for the operator', async () => {
    for (const name of ['arf-yahoo', 'person']) await send({ to: 'postmaster@mail.example.com', raw: corpus(name) })
    const rows = await db.selectFrom('inbound_messages').selectAll().orderBy('id').execute()
    const owner = { account_id: null, email_id: null, recipients: ['postmaster@mail.example.com'] }
    expect(rows).toMatchObject([
      { ...owner, reason: 'Nothing in it tells which email it is about.' },
      { ...owner, reason: 'It is neither a delivery status notification nor a feedback report.' },
    ])
    expect([await counted('unmatched'), await counted('unreadable')]).toEqual([1, 1])
  })

  test('a mailbox that is of no email keeps the newest hundred', async () => {
    const ids = Array.from({ length: 100 }, () => newId('inboundMessage', new Date(Date.now() - 60_000)))
    const older = {
      account_id: null,
      email_id: null,
      mail_from: '',
      recipients: [],
      reason: '',
      created_at: new Date(),
    }
    const rows = ids.map((id) => ({ ...older, id, content: Buffer.alloc(0) }))
    await db.insertInto('inbound_messages').values(rows).execute()
    await send({ to: 'abuse@mail.example.com', raw: corpus('person') })
    const kept = await db.selectFrom('inbound_messages').select('id').orderBy('id').execute()
    expect(kept.map(({ id }) => id).slice(0, -1)).toEqual(ids.slice(1))
  })

  test('a message of no email is taken at the return path of a domain', async () => {
    const to = 'postmaster@send.shop.example'
    await expect(send({ to, raw: corpus('person') })).rejects.toMatchObject({ responseCode: 550 })
    await db
      .insertInto('domains')
      .values({
        id: newId('domain', new Date()),
        account_id: accountId,
        name: 'shop.example',
        return_path: 'send.shop.example',
        rsa_selector: 'rsa',
        rsa_public_key: '',
        rsa_private_key: Buffer.alloc(0),
        ed25519_selector: 'ed25519',
        ed25519_public_key: '',
        ed25519_private_key: Buffer.alloc(0),
        findings: '{}',
      })
      .execute()
    await send({ to, raw: corpus('person') })
    expect(await counted('unreadable')).toBe(1)
  })
})

describe('what is not understood', () => {
  test('what is not understood is kept for people of the account to see, with the reason', async () => {
    const emailId = await sentTo('ada@example.org')
    await send({ to: returnPath(emailId), raw: corpus('person') })
    const { data } = await createInboundMessageService().list(db, live(accountId), { limit: 20 })
    expect(data).toMatchObject([
      {
        emailId,
        subject: 'My parcel could not be delivered',
        recipients: [returnPath(emailId)],
        reason: 'It is neither a delivery status notification nor a feedback report.',
      },
    ])
    expect(await counted('unreadable')).toBe(1)
  })

  test('a notification that names none of several recipients is kept for people of the account', async () => {
    const emailId = await sentTo('eve@example.org', 'bob@example.org')
    await send({ to: returnPath(emailId), raw: corpus('gmail-no-such-user') })
    const rows = await db.selectFrom('inbound_messages').select(['email_id', 'reason']).execute()
    expect(rows).toEqual([{ email_id: emailId, reason: 'It names none of the recipients of the email.' }])
    expect(await counted('unmatched')).toBe(1)
  })

  test('what is not understood is kept for the operator where its email is gone', async () => {
    const emailId = newId('email', new Date())
    await send({ to: returnPath(emailId), raw: corpus('person') })
    const rows = await db.selectFrom('inbound_messages').select(['account_id', 'email_id']).execute()
    expect(rows).toEqual([{ account_id: null, email_id: emailId }])
    expect(await counted('gone')).toBe(1)
  })

  test('what is not understood is kept up to a megabyte', async () => {
    const emailId = await sentTo('ada@example.org')
    await send({
      to: returnPath(emailId),
      raw: Buffer.concat([Buffer.from('Subject: Long\r\n\r\n'), Buffer.alloc(3_000_000, 'a\r\n')]),
    })
    const [row] = await db.selectFrom('inbound_messages').select('content').execute()
    expect(row?.content.length).toBe(1_048_576)
  })
})

describe('a recipient', () => {
  test.each([
    ['of a relay', 'ada@example.org'],
    ['with a token that nobody signed', `b.01jqz4x7m8e5v9t2k6r3w0y1ab0123456789abcdef@${host}`],
    ['with a token in front of another', `b.x@${host}`],
    ['that every host has, of another host', 'postmaster@elsewhere.example'],
    ['that a person would try', 'sales@mail.example.com'],
  ])('%s is refused', async (_, to) => {
    await expect(send({ to, raw: corpus('qmail') })).rejects.toMatchObject({
      responseCode: 550,
      response: expect.stringContaining('5.7.1'),
    })
  })

  test('a recipient that is refused takes nothing from those that are not', async () => {
    const emailId = await sentTo('ada@example.org')
    const { accepted, rejected } = await send({ to: ['ada@example.org', returnPath(emailId)], raw: corpus('qmail') })
    expect([accepted, rejected]).toEqual([[returnPath(emailId)], ['ada@example.org']])
    expect(await statusesOf(emailId)).toEqual(['bounced'])
  })

  test('a message has ten recipients at most', async () => {
    const to = Array.from({ length: 12 }, () => returnPath(newId('email', new Date())))
    const { accepted = [], rejected = [], rejectedErrors = [] } = await send({ to, raw: corpus('qmail') })
    expect([accepted.length, rejected.length]).toEqual([10, 2])
    expect(rejectedErrors[0]?.response).toMatch(/^452 4\.5\.3/)
  })

  test('a recipient that is guessed costs the connection in the end', async () => {
    const socket = connectSocket(listener.port, '127.0.0.1')
    let answers = ''
    socket.on('data', (data) => {
      answers += data
    })
    const closed = whenClosed(socket)
    await once(socket, 'data')
    socket.write(`EHLO guess.example\r\nMAIL FROM:<>\r\n${'RCPT TO:<b.guess@send.example.com>\r\n'.repeat(30)}`)
    await closed
    expect(answers.match(/^550 5\.7\.1/gm)).toHaveLength(9)
    expect(answers).toMatch(/^421 4\.7\.0/m)
  })
})

test('a message of more than 64 MiB is refused', async () => {
  const socket = connectSocket(listener.port, '127.0.0.1')
  const answers: string[] = []
  await once(socket, 'data')
  for (const line of ['EHLO client.test', 'MAIL FROM:<> SIZE=67108865', 'MAIL FROM:<> SIZE=67108864']) {
    socket.write(`${line}\r\n`)
    answers.push(String((await once(socket, 'data'))[0]).slice(0, 3))
  }
  socket.destroy()
  expect(answers).toEqual(['250', '552', '250'])
})

test('without the database nothing is taken, and everything later', async () => {
  const emailId = await sentTo('ada@example.org')
  const url = new URL(database.connectionString)
  await using line = await startTcpProxy({ host: url.hostname, port: Number(url.port || 5432) })
  url.host = `127.0.0.1:${line.port}`
  const cutOff = connect({ connectionString: url.toString(), max: 2, onError: () => undefined })
  const via = await start({ db: cutOff })
  await line.cut()
  const message = { to: returnPath(emailId), raw: corpus('qmail'), via }
  await expect(send(message)).rejects.toMatchObject({ responseCode: 451 })
  expect(await statusesOf(emailId)).toEqual(['accepted'])
  await line.mend()
  await send(message)
  expect(await statusesOf(emailId)).toEqual(['bounced'])
  await via.close(1_000)
  await cutOff.destroy()
})

describe('STARTTLS', () => {
  const options = { ignoreTLS: false, requireTLS: true, tls: { rejectUnauthorized: false } }

  test('STARTTLS is offered with a certificate', async () => {
    const via = await start({ tls })
    const emailId = await sentTo('ada@example.org')
    await send({ to: returnPath(emailId), raw: corpus('qmail'), via, options })
    expect(await statusesOf(emailId)).toEqual(['bounced'])
    await via.close(1_000)
  })

  test('STARTTLS is not offered without one', async () => {
    const emailId = await sentTo('ada@example.org')
    await expect(send({ to: returnPath(emailId), raw: corpus('qmail'), options })).rejects.toMatchObject({
      code: 'ETLS',
    })
  })

  test('STARTTLS with a file that is not there is an error that names the setting', async () => {
    const starting = start({ tls: { ...tls, keyFile: '/nowhere/key.pem' } })
    await expect(starting).rejects.toThrow(OperatorError)
    await expect(starting).rejects.toThrow('INBOUND_SMTP_TLS_KEY')
  })
})
