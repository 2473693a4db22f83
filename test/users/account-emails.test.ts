import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { contract } from '../../contract/index.ts'
import { textOf } from '../../server/account-email/texts.ts'
import { readMailbox } from '../../server/message/mailbox.ts'
import { readContent } from '../../server/stored-messages/parse.ts'
import { claimEmails } from '../../server/users/account-email-queries.ts'
import { createUserOperatorService } from '../../server/users/operator.ts'
import type { Answer } from '../support/client.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { patienceMs } from '../support/patience.ts'
import { goodPassword, invite, type Person, pageHeaders, personOf, signIn, signUp } from '../support/people.ts'
import { type ScriptedSmtp, startScriptedSmtp } from '../support/scripted-smtp.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Invitations and resets that go out by email, over a real relay on loopback.
 */

const { mailbox: accountEmailFrom } = readMailbox('Postern <account@mail.example.com>')
const newPassword = 'a password that is new'
const minuteMs = 60_000

let time: TestTime
let relay: ScriptedSmtp
let service: TestService

beforeAll(async () => {
  time = createTestTime()
  relay = await startScriptedSmtp()
  const way = { host: '127.0.0.1', port: relay.port, tls: 'opportunistic', credentials: null } as const
  service = await startTestService({ time, mail: { transport: 'relay', relay: way, accountEmailFrom } })
})
afterAll(async () => {
  await service?.stop()
  await relay?.stop()
})
// Requests without a session are limited to so many a minute and an hour.
beforeEach(() => time.advance(60 * minuteMs))

function open(path: string, json: object, headers = pageHeaders(service.url)): Promise<Answer> {
  return service.client.send('POST', path, { key: null, headers, json })
}
const askFor = (email: string) => open('/v1/password-resets', { email })
const accept = (json: object) => open('/v1/links/accept', json)
const lookUp = (token: string) => open('/v1/links/look-up', { token })

async function until<T>(look: () => Promise<T> | T): Promise<T> {
  return vi.waitFor(look, { timeout: patienceMs, interval: 20 })
}

const messagesTo = (email: string) =>
  relay.messages.filter(({ recipients }) => recipients.some(({ address }) => address === email))

/** Waits until `count` emails in all went to an address. Returns the token in the last one. */
async function tokenSentTo(email: string, count = 1): Promise<string> {
  await until(() => expect(messagesTo(email)).toHaveLength(count))
  return tokenIn(messagesTo(email).at(-1)?.data)
}

async function tokenIn(data: Buffer | undefined): Promise<string> {
  const { text } = await readContent(data ?? Buffer.alloc(0))
  const [, url = '', token = ''] = /(\S+)\/app\/accept#token=([\w-]{43})/.exec(text ?? '') ?? []
  expect(url).toBe(service.url)
  return token
}

const jobs = () =>
  service.database.db.selectFrom('account_emails').selectAll().where('due_at', 'is not', null).execute()
/** Waits until nothing is left to be sent. */
const untilIdle = () => until(async () => expect(await jobs()).toEqual([]))

async function inviteByApi(owner: Person, email: string) {
  return owner.send('POST', '/v1/invitations', { json: { email, role: 'viewer' } })
}

function operator() {
  return createUserOperatorService({ clock: service.clock, serviceUrl: () => service.url })
}

test('a reset by email sets a new password once, ends all sessions, and verifies the address', async () => {
  const person = await signUp(service)
  expect((await askFor(person.email.toUpperCase())).status).toBe(202)
  const token = await tokenSentTo(person.email)
  expect((await accept({ token, password: newPassword })).status).toBe(201)
  expect((await person.send('GET', '/v1/session')).status).toBe(401)
  expect((await signIn(service, { email: person.email, password: newPassword })).status).toBe(201)
  expect((await accept({ token, password: newPassword })).status).toBe(404)
  const users = await operator().list(service.database.db)
  expect(users.find(({ id }) => id === person.userId)?.emailVerifiedAt).toBe(time.clock.now().toISOString())
})

test('a reset by email is answered in the same words, with the same headers, for an address without a user', async () => {
  const { email } = await signUp(service)
  const toldBy = ({ status, text, headers }: Answer) => ({ status, text, names: Object.keys(headers).toSorted() })
  const [known, unknown] = [await askFor(email), await askFor('nobody@example.com')]
  expect(toldBy(unknown)).toEqual(toldBy(known))
  await tokenSentTo(email)
  await untilIdle()
  expect(messagesTo('nobody@example.com')).toEqual([])
  const rows = await service.database.db.selectFrom('account_emails').select('email').execute()
  expect(rows.map(({ email: kept }) => kept)).not.toContain('nobody@example.com')
})

test('a reset by email is answered without looking for the user, so that its time does not tell of one', async () => {
  const { email } = await signUp(service)
  const { db } = service.database
  await db.transaction().execute(async (trx) => {
    await sql`LOCK TABLE users IN ACCESS EXCLUSIVE MODE`.execute(trx)
    expect((await askFor(email)).status).toBe(202)
  })
  await tokenSentTo(email)
})

test('a reset by email stands in the database with no token, neither before nor after it is sent', async () => {
  const { email } = await signUp(service)
  await askFor(email)
  const token = await tokenSentTo(email)
  const { rows: tables } = await sql<{ name: string }>`
      SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname IN ('public', 'pgboss')
    `.execute(service.database.db)
  for (const { name } of tables) {
    const { rows } = await sql<{ row: string }>`SELECT t::text AS row FROM ${sql.raw(name)} t`.execute(
      service.database.db,
    )
    expect(rows.filter(({ row }) => row.includes(token))).toEqual([])
  }
  expect((await lookUp(token)).status).toBe(200)
})

test('a reset by email asked for again within 10 minutes sends nothing, and the link of the first email still works', async () => {
  const { email } = await signUp(service)
  await askFor(email)
  const first = await tokenSentTo(email)
  await time.advance(10 * minuteMs - 1)
  await askFor(email)
  await untilIdle()
  expect(messagesTo(email)).toHaveLength(1)
  expect((await lookUp(first)).status).toBe(200)
  await time.advance(1)
  await askFor(email)
  const second = await tokenSentTo(email, 2)
  expect((await lookUp(first)).status).toBe(404)
  await time.advance(60 * minuteMs)
  expect((await lookUp(second)).status).toBe(404)
})

test('a reset by email leaves a link of the command line alone until one of both is used', async () => {
  const { email } = await signUp(service)
  const { link } = await operator().resetPassword(service.database.db, email)
  const byOperator = link.slice(link.indexOf('#token=') + 7)
  await askFor(email)
  const token = await tokenSentTo(email)
  expect((await lookUp(byOperator)).status).toBe(200)
  expect((await accept({ token, password: newPassword })).status).toBe(201)
  expect((await lookUp(byOperator)).status).toBe(404)
})

test('a reset by email has a link to this service, whatever host the request names', async () => {
  const { email } = await signUp(service)
  const headers = { ...pageHeaders('http://evil.example'), host: 'evil.example', 'x-forwarded-host': 'evil.example' }
  expect((await open('/v1/password-resets', { email }, headers)).status).toBe(202)
  await tokenSentTo(email)
  expect(messagesTo(email)[0]?.data.toString()).not.toContain('evil.example')
})

test('a reset by email can be asked for 10 times in an hour by one client, for whatever addresses', async () => {
  for (let request = 0; request < 10; request += 1)
    expect((await askFor(`nobody-${request}@example.com`)).status).toBe(202)
  const refused = await askFor('nobody-11@example.com')
  expect([refused.status, Number(refused.headers['retry-after'])]).toEqual([429, expect.any(Number)])
  await time.advance(60 * minuteMs)
  expect((await askFor('nobody-11@example.com')).status).toBe(202)
  await untilIdle()
})

test('a reset by email that the server puts off is tried again with another token, and only the last one works', async () => {
  const { email } = await signUp(service)
  let tries = 0
  relay.at('message', () => {
    tries += 1
    return tries === 1 ? '451 4.3.0 try again later' : undefined
  })
  await askFor(email)
  await until(() => expect(service.logged.join()).toContain('an email to a user was not taken'))
  await until(async () => {
    const [job] = await jobs()
    expect(job?.due_at).toEqual(new Date(time.clock.now().getTime() + 10_000))
  })
  const { db } = service.database
  const hashes = async () => db.selectFrom('user_links').select('token_hash').where('by_email', '=', true).execute()
  const before = await hashes()
  await time.advance(10_000)
  const token = await tokenSentTo(email)
  expect(tries).toBe(2)
  expect(await hashes()).not.toEqual(before)
  expect((await lookUp(token)).status).toBe(200)
  relay.at('message', () => undefined)
  await untilIdle()
})

test('a reset by email that waited for a worker for more than an hour is not sent', async () => {
  const { email } = await signUp(service)
  const asked = new Date(time.clock.now().getTime() - 60 * minuteMs - 1)
  await service.database.db
    .insertInto('account_emails')
    .values({ kind: 'password_reset', account_id: null, link_id: null, email, created_at: asked, due_at: asked })
    .execute()
  await untilIdle()
  expect(messagesTo(email)).toEqual([])
})

test('a reset by email is refused with 422 where the service sends no email to its users', async () => {
  await using without = await startTestService({ beside: service, time, roles: { worker: false } })
  for (const email of [(await signUp(service)).email, 'nobody@example.com']) {
    const answer = await without.client.send('POST', '/v1/password-resets', {
      key: null,
      headers: pageHeaders(without.url),
      json: { email },
    })
    expect(answer).toMatchObject({ status: 422, body: { error: { code: 'account_email_off' } } })
    expect(answer.text).toContain('users reset-password')
  }
  expect(await jobs()).toEqual([])
})

test('an invitation by email shows its link to no other person, and verifies the address of who accepts it', async () => {
  const owner = await signUp(service)
  const email = 'invited-by-email@example.com'
  const made = await inviteByApi(owner, email)
  expect(made).toMatchObject({ status: 201, body: { email, emailStatus: 'queued', link: null } })
  const token = await tokenSentTo(email)
  const [message] = messagesTo(email)
  expect(message?.mailFrom).toBe('account@mail.example.com')
  expect(message?.data.toString()).toMatch(/^From: Postern <account@mail\.example\.com>\r\n/)
  expect(message?.data.toString()).toContain('Auto-Submitted: auto-generated')
  await until(async () => {
    const { body } = await owner.send('GET', '/v1/invitations')
    expect(Object(body).data[0]).toMatchObject({ email, emailStatus: 'sent' })
  })
  const answer = await accept({ token, name: 'Grace Hopper', password: goodPassword })
  expect(answer.status).toBe(201)
  const { userId } = personOf(service, { email, answer })
  const { body } = await owner.send('GET', '/v1/members?limit=100')
  const verifiedAt = (id: string) =>
    Object(body).data.find((member: { userId: string }) => member.userId === id).emailVerifiedAt
  expect(verifiedAt(userId)).toBe(time.clock.now().toISOString())
  // Whose link was shown on the command line.
  expect(verifiedAt(owner.userId)).toBeNull()
})

test('an invitation by email of a user who is there verifies their address too', async () => {
  const [owner, person] = [await signUp(service), await signUp(service)]
  await service.database.db.deleteFrom('memberships').where('user_id', '=', person.userId).execute()
  await inviteByApi(owner, person.email)
  const token = await tokenSentTo(person.email)
  expect((await accept({ token, password: goodPassword })).status).toBe(201)
  const info = await operator().find(service.database.db, person.email)
  expect(info.emailVerifiedAt).not.toBeNull()
})

test('an invitation by email that is taken back while it waits is not sent', async () => {
  const owner = await signUp(service)
  const email = 'taken-back@example.com'
  relay.at('rcpt', ({ argument }) => (argument.includes(email) ? '451 4.7.1 later' : undefined))
  const { body } = await inviteByApi(owner, email)
  await until(async () => expect((await jobs())[0]?.due_at).toEqual(new Date(time.clock.now().getTime() + 10_000)))
  expect((await owner.send('DELETE', `/v1/invitations/${Object(body).id}`)).status).toBe(204)
  relay.at('rcpt', () => undefined)
  await time.advance(2 * minuteMs)
  await untilIdle()
  expect(messagesTo(email)).toEqual([])
})

test('an invitation by email says so when the address is refused, and is not tried again', async () => {
  const owner = await signUp(service)
  const email = 'refused@example.com'
  relay.at('rcpt', ({ argument }) => (argument.includes(email) ? '550 5.1.1 no such user' : undefined))
  await inviteByApi(owner, email)
  await until(async () => {
    const { body } = await owner.send('GET', '/v1/invitations')
    expect(Object(body).data[0]).toMatchObject({ email, emailStatus: 'failed' })
  })
  await untilIdle()
  relay.at('rcpt', () => undefined)
})

test('an invitation by email is given up after a day', async () => {
  const owner = await signUp(service)
  const email = 'greylisted@example.com'
  relay.at('rcpt', ({ argument }) => (argument.includes(email) ? '451 4.7.1 later' : undefined))
  await inviteByApi(owner, email)
  const { db } = service.database
  const nextTry = new Date(time.clock.now().getTime() + 10_000)
  await until(async () => expect((await jobs())[0]?.due_at).toEqual(nextTry))
  // The next attempt is then the last one within a day.
  const created_at = new Date(nextTry.getTime() - 24 * 60 * minuteMs + 1_000)
  await db.updateTable('account_emails').set({ created_at }).where('email', '=', email).execute()
  await time.advance(10_000)
  await untilIdle()
  const { body } = await owner.send('GET', '/v1/invitations')
  expect(Object(body).data[0]).toMatchObject({ email, emailStatus: 'failed' })
  relay.at('rcpt', () => undefined)
})

test('an invitation by email goes to one address 5 times a day, and out of one account 200 times', async () => {
  const owner = await signUp(service)
  const email = 'bombed@example.com'
  for (let round = 0; round < 5; round += 1) expect((await inviteByApi(owner, email)).status).toBe(201)
  expect(await inviteByApi(owner, email)).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } })
  const { db } = service.database
  const { accountId } = service
  await sql`
      INSERT INTO account_emails (kind, account_id, link_id, email, created_at)
      SELECT 'invitation', ${accountId}, 'link', 'x@example.com', ${time.clock.now()} FROM generate_series(1, 200)
    `.execute(db)
  expect((await inviteByApi(owner, 'beyond@example.com')).status).toBe(409)
  const { body } = await owner.send('GET', '/v1/invitations')
  expect(JSON.stringify(body)).not.toContain('beyond@example.com')
  await time.advance(24 * 60 * minuteMs + 1)
  expect((await inviteByApi(owner, 'beyond@example.com')).status).toBe(201)
  await untilIdle()
  await sql`DELETE FROM account_emails`.execute(db)
})

test('an invitation by email is no email of the account: no email, event or captured message of it', async () => {
  const owner = await signUp(service)
  await inviteByApi(owner, 'not-counted@example.com')
  await tokenSentTo('not-counted@example.com')
  expect((await service.client.succeed(contract.emails.list, { query: {} })).data).toEqual([])
  expect((await service.client.succeed(contract.events.list, { query: {} })).data).toEqual([])
  expect((await service.client.succeed(contract.capturedMessages.list, { query: {} })).data).toEqual([])
})

test('emails to users that are due are claimed in turn, one of each account at a time', async () => {
  const { db } = service.database
  const accounts = await db.selectFrom('accounts').select('id').orderBy('id').execute()
  const [flooding = '', other = ''] = accounts.map(({ id }) => id)
  // Later than the service looks, which would claim them.
  const now = new Date('2100-01-01T00:00:00Z')
  // Those of the account with many came first.
  await sql`
    INSERT INTO account_emails (kind, account_id, link_id, email, created_at, due_at)
    SELECT 'invitation', CASE WHEN n > 200 THEN ${other} ELSE ${flooding}::text END, 'link', n || '@example.com', ${now}::timestamptz, ${now}::timestamptz
    FROM generate_series(1, 201) n
  `.execute(db)
  const claim = (busy: string[]) =>
    claimEmails(db, { kind: 'invitation', limit: 8, busy, now, until: new Date(now.getTime() + 1) })
  const first = await claim([])
  expect(first.map(({ account_id }) => account_id).toSorted()).toEqual([flooding, other].toSorted())
  expect(await claim([flooding])).toEqual([])
  expect((await claim([])).map(({ account_id }) => account_id)).toEqual([flooding])
  await sql`DELETE FROM account_emails`.execute(db)
})

test('the words of an email keep the name of an account from being markup or a header', () => {
  const { subject, html } = textOf({
    kind: 'invitation',
    linkId: 'inv_x',
    to: 'ada@example.com',
    link: 'https://mail.example.com/app/accept#token=x',
    expiresAt: new Date('2026-03-01T09:30:00Z'),
    invitation: { accountName: '<img src=x onerror=alert(1)>"', role: 'viewer' },
  })
  expect(html).toContain('&lt;img src=x onerror=alert(1)&gt;&quot;')
  expect(html).not.toContain('<img')
  expect(subject).toContain('<img')
})

describe('while email is captured', () => {
  test('an email to a user is shown to the first account, signed by a verified domain that covers its sender', async () => {
    const { mailbox: from } = readMailbox('Postern <account@accounts.shop.test>')
    await using captured = await startTestService({ mail: { accountEmailFrom: from } })
    await captured.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    const token = await invite(captured, { email: 'first@example.com' })
    const headers = pageHeaders(captured.url)
    const post = (path: string, json: object) => captured.client.send('POST', path, { key: null, headers, json })
    await post('/v1/links/accept', { token, name: 'Ada', password: goodPassword })
    expect((await post('/v1/password-resets', { email: 'first@example.com' })).status).toBe(202)
    const { id, mailFrom } = await until(async () => {
      const { data } = await captured.client.succeed(contract.capturedMessages.list, { query: {} })
      if (data[0] === undefined) throw new Error('nothing is captured')
      return data[0]
    })
    expect(mailFrom).toMatch(/^account@\w+\.shop\.test$/)
    const { text, source } = await captured.client.succeed(contract.capturedMessages.get, { params: { id } })
    expect(Buffer.from(source, 'base64').toString()).toMatch(/^DKIM-Signature: [\s\S]*d=shop\.test/)
    expect(text).toContain(`${captured.url}/app/accept#token=`)
    const theirs = await captured.client.as(captured.keys.other).succeed(contract.capturedMessages.list, { query: {} })
    expect(theirs.data).toEqual([])
  })
})
