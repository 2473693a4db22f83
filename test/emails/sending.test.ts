import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { DomainError } from '../../server/shared/errors.ts'
import type { Scope } from '../../server/shared/scope.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createEmailWorld, type EmailWorld, good, hourMs } from '../support/worlds/emails.ts'

let world: EmailWorld

beforeAll(async () => {
  world = await createEmailWorld()
})
afterAll(() => world.end())
beforeEach(async () => {
  await world.emitted()
  await world.due()
})

async function statusesOf(id: string, key: Scope = world.live): Promise<[string, ...string[]]> {
  const { status, recipients } = await world.emails.get(world.db, key, id)
  return [status, ...recipients.map((recipient) => recipient.status)]
}

test('an email that is scheduled wakes nothing when it is stored', async () => {
  const { db, live, emails, wakes } = world
  const before = wakes()
  const scheduledAt = new Date(world.time.clock.now().getTime() + 3_600_000).toISOString()
  const { id, status } = await emails.send(db, live, { ...good, scheduledAt })
  expect([status, wakes()]).toEqual(['scheduled', before])
  await emails.cancel(db, live, id)
})

test('a live key has an email sent: it is queued with its recipients and its job, and the sending is woken', async () => {
  const { db, live, emails, wakes } = world
  const before = wakes()
  const { id, status } = await emails.send(db, live, {
    ...good,
    to: ['Ada <ada@example.org>', 'bob@bücher.example'],
    bcc: 'cy@example.org',
  })
  expect(status).toBe('queued')
  expect(await emails.get(db, live, id)).toMatchObject({
    mode: 'live',
    from: 'Shop <hello@shop.test>',
    to: ['Ada <ada@example.org>', 'bob@bücher.example'],
    cc: [],
    bcc: ['cy@example.org'],
    completedAt: null,
    recipients: [
      { address: 'ada@example.org', name: 'Ada', kind: 'to', status: 'queued', nextAttemptAt: null },
      { address: 'bob@bücher.example', name: null, kind: 'to', status: 'queued' },
      { address: 'cy@example.org', kind: 'bcc', status: 'queued' },
    ],
    timeline: [{ type: 'queued', recipient: null }],
  })
  expect(await world.due()).toEqual([id])
  expect(wakes()).toBe(before + 1)
  expect(await world.emitted()).toEqual([])
})

test('a live key keeps what the worker needs: the domain, the Message-ID, and how addresses are compared', async () => {
  const { db, live, emails, domainId } = world
  const { id } = await emails.send(db, live, { ...good, from: 'Ada@News.Shop.TEST', to: 'Ada@Bücher.example' })
  const row = await db.selectFrom('emails').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
  expect(row).toMatchObject({
    domain_id: domainId,
    sender: 'Ada@News.Shop.TEST',
    message_id: `<${id.slice('email_'.length)}@news.shop.test>`,
  })
  const recipients = await db.selectFrom('email_recipients').selectAll().where('email_id', '=', id).execute()
  expect(recipients).toMatchObject([
    {
      position: 0,
      domain: 'xn--bcher-kva.example',
      address_key: 'ada@xn--bcher-kva.example',
      address: 'Ada@Bücher.example',
    },
  ])
})

test('a live key stores the content as it was given, and the attachments as bytes', async () => {
  const { db, live, emails } = world
  const content = Buffer.from([0, 1, 2, 0xff, 0x5c, 0x22])
  const { id } = await emails.send(db, live, {
    ...good,
    html: '<p>"Ä" \\ {a,b} 😀</p>',
    text: 'line\r\nline\ttab',
    subject: '{"NULL", \\}',
    headers: { 'X-A': '"{}\\', References: '<1@example.com>' },
    replyTo: ['"Us, all" <us@shop.test>'],
    tags: ['a,b', 'NULL', '"'],
    attachments: [
      { filename: 'ä {,}".bin', content: content.toString('base64'), contentId: 'x' },
      { filename: 'empty.txt', content: '' },
    ],
    trackOpens: true,
  })
  expect(await emails.get(db, live, id)).toMatchObject({
    html: '<p>"Ä" \\ {a,b} 😀</p>',
    text: 'line\r\nline\ttab',
    subject: '{"NULL", \\}',
    headers: { 'X-A': '"{}\\', References: '<1@example.com>' },
    replyTo: ['"Us, all" <us@shop.test>'],
    tags: ['a,b', 'NULL', '"'],
    attachments: [
      { filename: 'ä {,}".bin', contentType: 'application/octet-stream', contentId: 'x', size: 6 },
      { filename: 'empty.txt', contentType: 'text/plain', contentId: null, size: 0 },
    ],
    trackOpens: true,
    trackClicks: false,
  })
  const rows = await db
    .selectFrom('email_attachments')
    .select('content')
    .where('email_id', '=', id)
    .orderBy('position')
    .execute()
  expect(rows.map((row) => row.content)).toEqual([content, Buffer.alloc(0)])
})

test.each(['hello@example.com', 'hello@shop.test.example', 'hello@myshop.test', 'hello@test.test'])(
  'a live key does not send from %s, which no domain covers',
  async (from) => {
    const { db, live, emails } = world
    const sent = emails.send(db, live, { ...good, from })
    await expect(sent).rejects.toMatchObject({
      code: 'domain_not_verified',
      message: expect.stringContaining(`"${from.slice('hello@'.length)}" is not a sending domain of this account`),
      details: [{ path: 'body.from', message: 'must be at a verified sending domain of the account' }],
    })
  },
)

test('a live key does not send from a domain that is not verified, nor from one of another account', async () => {
  const { db, stranger, live, domains, emails } = world
  const { id } = await domains.create(db, live, { name: 'pending.example' })
  await expect(emails.send(db, live, { ...good, from: 'a@pending.example' })).rejects.toMatchObject({
    code: 'domain_not_verified',
    message: expect.stringContaining(`POST /v1/domains/${id}/verify`),
    details: [{ path: 'body.from' }],
  })
  const theirs = { accountId: stranger, mode: 'live' as const }
  expect(await refusal(emails.send(db, theirs, good))).toBe('domain_not_verified')
})

test('a live key stores nothing of what is refused', async () => {
  const { db, live, emails } = world
  const count = async () => (await db.selectFrom('emails').select('id').execute()).length
  const before = await count()
  for (const bad of [{ from: 'a@example.com' }, { to: 'x' }, { audienceId: exampleId('audience') }]) {
    expect(await refusal(emails.send(db, live, { ...good, ...bad }))).not.toBe('not refused')
  }
  expect(await count()).toBe(before)
  expect(await world.due()).toEqual([])
})

test('a test key has an email checked and stored, and nothing queued', async () => {
  const { db, test: testKey, emails, wakes } = world
  const before = wakes()
  const { id, status } = await emails.send(db, testKey, { ...good, from: 'anybody@anywhere.example' })
  expect(status).toBe('validated')
  const { completedAt, timeline, recipients } = await emails.get(db, testKey, id)
  expect(completedAt).not.toBeNull()
  expect(timeline.map(({ type }) => type)).toEqual(['validated'])
  expect(recipients.map((recipient) => recipient.status)).toEqual(['validated'])
  expect([await world.due(), wakes()]).toEqual([[], before])
  expect(await refusal(emails.send(db, testKey, { ...good, to: 'x' }))).toBe('validation_error')
  expect(await refusal(emails.send(db, testKey, { ...good, audienceId: exampleId('audience') }))).toBe(
    'audience_not_found',
  )
})

test('a test key plays with the simulator, and with nobody else', async () => {
  const { db, test: testKey, emails } = world
  const { id } = await emails.send(db, testKey, {
    ...good,
    to: ['Delivered+1@Simulator.TEST', 'ada@example.org', 'delivered@mx.simulator.test'],
  })
  expect(await statusesOf(id, testKey)).toEqual(['queued', 'queued', 'validated', 'validated'])
  expect(await world.due()).toEqual([id])
})

test('a test key does not look at the suppression list', async () => {
  const { db, account, test: testKey, emails, suppressions } = world
  await suppressions.create(db, account, { address: 'blocked-test@example.org' })
  const { status } = await emails.send(db, testKey, { ...good, to: 'blocked-test@example.org' })
  expect(status).toBe('validated')
  expect(await world.emitted()).toEqual([])
})

test('suppressed addresses get nothing, which email.failed tells at once, with what to do', async () => {
  const { db, account, live, emails, suppressions } = world
  await suppressions.create(db, account, { address: 'Blocked@Example.org' })
  const { id } = await emails.send(db, live, { ...good, to: ['ada@example.org', 'BLOCKED@example.org'] })
  const { status, recipients, timeline } = await emails.get(db, live, id)
  const reason =
    'The address has been on the suppression list since 2026-03-01 (manual), so nothing is sent to it. DELETE /v1/suppressions/BLOCKED%40example.org takes it off.'
  expect([status, recipients]).toMatchObject(['queued', [{ status: 'queued' }, { status: 'suppressed', reason }]])
  expect(timeline).toMatchObject([
    { type: 'queued', recipient: null },
    { type: 'suppressed', recipient: 'BLOCKED@example.org', detail: reason },
  ])
  const failedAt = '2026-03-01T09:30:00.000Z'
  expect(await world.emitted()).toEqual([
    ['email.failed', { emailId: id, to: 'BLOCKED@example.org', subject: 'Welcome', failedAt, reason }],
  ])
  expect(await world.due()).toEqual([id])
})

test('suppressed addresses alone leave nothing to be done', async () => {
  const { db, account, live, emails, suppressions } = world
  await suppressions.create(db, account, { address: 'alone@example.org' })
  const { id, status } = await emails.send(db, live, { ...good, to: 'alone@example.org' })
  expect(status).toBe('suppressed')
  const { completedAt, timeline } = await emails.get(db, live, id)
  expect([completedAt, timeline.map(({ type }) => type)]).toEqual(['2026-03-01T09:30:00.000Z', ['suppressed']])
  expect(await world.due()).toEqual([])
})

test('suppressed addresses are those of the account alone, and of internationalised addresses too', async () => {
  const { db, account, stranger, live, emails, suppressions } = world
  await suppressions.create(db, stranger, { address: 'theirs@example.org' })
  await suppressions.create(db, account, { address: '"a b"@bücher.example' })
  const { id } = await emails.send(db, live, {
    ...good,
    to: ['theirs@example.org', '"A\\ B"@XN--BCHER-KVA.example'],
  })
  expect(await statusesOf(id)).toEqual(['queued', 'queued', 'suppressed'])
  expect(await world.emitted()).toMatchObject([['email.failed', { to: '"A B"@XN--BCHER-KVA.example' }]])
})

test('suppressed addresses do not stop what the simulator plays', async () => {
  const { db, account, live, emails, suppressions } = world
  await suppressions.create(db, account, { address: 'bounced@simulator.test' })
  const { id } = await emails.send(db, live, { ...good, to: 'bounced@simulator.test' })
  expect(await statusesOf(id)).toEqual(['queued', 'queued'])
})

test('addresses suppressed as unsubscribed are held back from emails to an audience only', async () => {
  const { db, account, live, emails, audiences } = world
  const at = world.time.clock.now()
  await db
    .insertInto('suppressions')
    .values({
      id: exampleId('suppression'),
      account_id: account,
      address: 'left@example.org',
      address_key: 'left@example.org',
      reason: 'unsubscribe',
      email_id: null,
      created_at: at,
    })
    .execute()
  const audience = await audiences.create(db, live, { name: 'News' })
  const own = await emails.send(db, live, { ...good, to: 'left@example.org' })
  const news = await emails.send(db, live, { ...good, to: 'left@example.org', audienceId: audience.id })
  expect([own.status, news.status]).toEqual(['queued', 'suppressed'])
})

test('an email to an audience does not go to people who unsubscribed from it, or from everything', async () => {
  const { db, live, emails, audiences, contacts, subscribers } = world
  const [news, other] = [
    await audiences.create(db, live, { name: 'News' }),
    await audiences.create(db, live, { name: 'Other' }),
  ]
  const add = async (audienceId: string, email: string) =>
    (await contacts.add(db, live, audienceId, { email })).subscriberId
  await add(news.id, 'stays@example.org')
  const quiet = await add(news.id, 'quiet@example.org')
  await contacts.update(db, live, { audienceId: news.id, subscriberId: quiet }, { status: 'unsubscribed' })
  const elsewhere = await add(other.id, 'elsewhere@example.org')
  await contacts.update(db, live, { audienceId: other.id, subscriberId: elsewhere }, { status: 'unsubscribed' })
  const gone = await subscribers.create(db, live, { email: 'gone@example.org' })
  await subscribers.unsubscribe(db, live, gone.id)

  const to = ['stays@example.org', 'Quiet@example.org', 'elsewhere@example.org', 'GONE@example.org', 'new@example.org']
  const { id } = await emails.send(db, live, { ...good, to, audienceId: news.id })
  expect(await statusesOf(id)).toEqual(['queued', 'queued', 'suppressed', 'queued', 'suppressed', 'queued'])
  const own = await emails.send(db, live, { ...good, to })
  expect(await statusesOf(own.id)).toEqual(['queued', ...to.map(() => 'queued')])
})

test('an email to an audience is refused for an audience of another account', async () => {
  const { db, stranger, live, emails, audiences } = world
  const theirs = await audiences.create(db, { ...live, accountId: stranger }, { name: 'Theirs' })
  expect(await refusal(emails.send(db, live, { ...good, audienceId: theirs.id }))).toBe('audience_not_found')
})

const unverified = { ...good, from: 'a@example.com' }
const malformed = { ...good, to: 'x' }

test('a batch is stored whole, in the order given', async () => {
  const { db, live, emails } = world
  const items = Array.from({ length: 100 }, (_, index) => ({
    ...good,
    subject: `Email ${index}`,
    tags: [`t${index}`],
  }))
  const sent = await emails.sendBatch(db, live, { items, isPermissive: false })
  const ids = sent.map((one) => (one instanceof DomainError ? '' : one.id))
  expect(ids).toEqual(ids.toSorted())
  expect(await world.due()).toEqual(ids)
  const { data } = await emails.list(db, live, { limit: 100 })
  expect(data.map(({ subject, tags, to }) => [subject, tags, to])).toEqual(
    items.map(({ subject, tags, to }) => [subject, tags, to]).toReversed(),
  )
})

test('a batch is refused whole, with every fault of every email, and stores nothing', async () => {
  const { db, live, emails } = world
  const before = await emails.list(db, live, { limit: 1 })
  const sent = emails.sendBatch(db, live, {
    items: [good, malformed, { ...malformed, text: null }],
    isPermissive: false,
  })
  await expect(sent).rejects.toMatchObject({
    code: 'validation_error',
    details: [{ path: 'body.emails[1].to' }, { path: 'body.emails[2].to' }, { path: 'body.emails[2].html' }],
  })
  const late = emails.sendBatch(db, live, { items: [good, unverified], isPermissive: false })
  await expect(late).rejects.toMatchObject({
    code: 'domain_not_verified',
    message: expect.stringMatching(/^body\.emails\[1\]: "example\.com" is not a sending domain/),
    details: [{ path: 'body.emails[1].from' }],
  })
  expect(await emails.list(db, live, { limit: 1 })).toEqual(before)
  expect(await world.due()).toEqual([])
})

test('a batch that is permissive sends what it can, and says what is wrong with each of the others', async () => {
  const { db, live, emails } = world
  const unread = new DomainError('validation_error', 'It has another shape.')
  const items = [unverified, good, malformed, unread, { ...good, audienceId: exampleId('audience') }]
  const results = await emails.sendBatch(db, live, { items, isPermissive: true })
  expect(results.map((one) => (one instanceof DomainError ? one.code : one.status))).toEqual([
    'domain_not_verified',
    'queued',
    'validation_error',
    'validation_error',
    'audience_not_found',
  ])
  expect(results[3]).toBe(unread)
  expect(results.map((one) => (one instanceof DomainError ? one.details.map(({ path }) => path) : null))).toEqual([
    ['body.emails[0].from'],
    null,
    ['body.emails[2].to'],
    [],
    ['body.emails[4].audienceId'],
  ])
  expect(await world.due()).toHaveLength(1)
})

test('a batch in which all are refused stores nothing', async () => {
  const { db, live, emails } = world
  const results = await emails.sendBatch(db, live, { items: [malformed, unverified], isPermissive: true })
  expect(results.every((one) => one instanceof DomainError)).toBe(true)
})

test('a batch tells of the suppressed recipients of all its emails', async () => {
  const { db, account, live, emails, suppressions } = world
  await suppressions.create(db, account, { address: 'batch@example.org' })
  const items = [1, 2].map((number) => ({
    ...good,
    to: ['batch@example.org', good.from],
    subject: `Email ${number}`,
  }))
  await emails.sendBatch(db, live, { items, isPermissive: false })
  expect(await world.emitted()).toMatchObject([
    ['email.failed', { to: 'batch@example.org', subject: 'Email 1' }],
    ['email.failed', { to: 'batch@example.org', subject: 'Email 2' }],
  ])
})

test('what is scheduled waits for its time', async () => {
  const { db, live, emails, time } = world
  const scheduledAt = new Date(time.clock.now().getTime() + hourMs).toISOString()
  const { id, status } = await emails.send(db, live, { ...good, scheduledAt })
  expect(status).toBe('scheduled')
  expect(await emails.get(db, live, id)).toMatchObject({
    scheduledAt,
    completedAt: null,
    recipients: [{ status: 'queued', nextAttemptAt: scheduledAt }],
    timeline: [{ type: 'scheduled', detail: `For ${scheduledAt}.` }],
  })
  expect(await world.due()).toEqual([])
  await time.advance(hourMs)
  expect(await world.due()).toEqual([id])
})
