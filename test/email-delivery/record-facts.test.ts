import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import type { RecipientFact } from '../../server/email-delivery/recipient-facts.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { markSending } from '../../server/email-delivery/sending-queries.ts'
import { createOutbox, type Outbox } from '../../server/outbox/append.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'

const at = new Date('2026-03-01T09:30:00.000Z')

let database: TestDatabase
let accountId: string
let outbox: Outbox

beforeAll(async () => {
  database = await createTestDatabase()
  accountId = await seedAccount(database.db, at)
  outbox = createOutbox({ clock: { now: () => at }, wake: () => undefined })
})
afterAll(() => database.drop())

function accepted(emailId: string, position: number): RecipientFact {
  return { kind: 'accepted', final: true, reply: '250 2.0.0 OK', host: 'mx.example.com', emailId, position, at }
}

function bounced(emailId: string, position: number): RecipientFact {
  const reply = '550 5.1.1 nobody'
  return {
    kind: 'bounced',
    bounceType: 'hard',
    reason: 'Nobody.',
    reply,
    host: 'mx.example.com',
    emailId,
    position,
    at,
  }
}

async function begin(emailId: string, positions: number[]): Promise<void> {
  const begun = positions.map((position) => ({ emailId, position }))
  await inTransaction(database.db, (trx) => markSending(trx, { begun, resent: [], at }))
}

const record = (...facts: RecipientFact[]) => recordFacts(database.db, { outbox, random: () => 0.5 }, facts)

async function seen(emailId: string) {
  const { db } = database
  const [email, recipients, timeline, events] = await Promise.all([
    db.selectFrom('emails').select(['status', 'completed_at']).where('id', '=', emailId).executeTakeFirstOrThrow(),
    db.selectFrom('email_recipients').selectAll().where('email_id', '=', emailId).orderBy('position').execute(),
    db.selectFrom('email_timeline').selectAll().where('email_id', '=', emailId).orderBy('id').execute(),
    db.selectFrom('events').select(['type', 'body']).where('body', 'like', `%${emailId}%`).orderBy('id').execute(),
  ])
  return {
    status: email.status,
    completed: email.completed_at !== null,
    recipients: recipients.map(({ status }) => status),
    timeline: timeline.map(({ position, type, reply }) => ({ position, type, reply })),
    events: events.map(({ type, body }) => `${type} ${JSON.parse(body).data.to}`),
  }
}

function deferred(emailId: string, position: number): RecipientFact {
  return { kind: 'deferred', reason: 'Later.', reply: null, host: null, unknown: false, emailId, position, at }
}

test('recording facts changes recipients, history, events and the email together', async () => {
  const id = await seedEmail(database.db, { accountId, at, to: ['ada@example.com', 'bob@example.com'] })
  await begin(id, [0, 1])
  const [remainder] = await record(accepted(id, 0), bounced(id, 1))
  expect(remainder).toEqual({ emailId: id, anyQueued: false, nextAt: null })
  expect(await seen(id)).toEqual({
    status: 'sent',
    completed: true,
    recipients: ['delivered', 'bounced'],
    timeline: [
      { position: 0, type: 'delivered', reply: '250 2.0.0 OK' },
      { position: 1, type: 'bounced', reply: '550 5.1.1 nobody' },
    ],
    events: ['email.sent ada@example.com', 'email.delivered ada@example.com', 'email.bounced bob@example.com'],
  })
  const suppressed = await database.db.selectFrom('suppressions').selectAll().execute()
  expect(suppressed).toMatchObject([{ address: 'bob@example.com', reason: 'hard_bounce', email_id: id }])
})

test('recording facts a second time changes nothing', async () => {
  const id = await seedEmail(database.db, { accountId, at, to: ['cy@example.com', 'di@example.com'] })
  await begin(id, [0, 1])
  const remainder = await record(accepted(id, 0), deferred(id, 1))
  const once = await seen(id)
  expect(await record(accepted(id, 0), accepted(id, 0), deferred(id, 1))).toEqual(remainder)
  expect(await seen(id)).toEqual(once)
})

test('recording facts tells what remains: a time where a recipient is deferred, and that one waits without', async () => {
  const id = await seedEmail(database.db, { accountId, at, to: ['a@example.com', 'b@example.com', 'c@example.com'] })
  await begin(id, [0, 1])
  expect(await record(accepted(id, 0), deferred(id, 1))).toEqual([
    { emailId: id, anyQueued: true, nextAt: new Date('2026-03-01T09:35:00.000Z') },
  ])
  expect(await seen(id)).toMatchObject({
    status: 'sending',
    completed: false,
    recipients: ['delivered', 'deferred', 'queued'],
  })
})

test('recording facts of an email that is gone, or of a recipient it does not have, does nothing', async () => {
  const id = await seedEmail(database.db, { accountId, at, to: ['d@example.com'] })
  await record(accepted(id, 7))
  expect(await seen(id)).toMatchObject({ status: 'queued', events: [] })
  await database.db.deleteFrom('emails').where('id', '=', id).execute()
  expect(await record(accepted(id, 0))).toEqual([])
})

test('an event that cannot be published undoes all facts of its transaction', async () => {
  const id = await seedEmail(database.db, { accountId, at, to: ['e@example.com'] })
  await begin(id, [0])
  const wrong: RecipientFact = {
    kind: 'clicked',
    link: 'no link',
    userAgent: null,
    ipAddress: null,
    automated: false,
    emailId: id,
    position: 0,
    at,
  }
  await expect(record(accepted(id, 0), wrong)).rejects.toThrow()
  expect(await seen(id)).toMatchObject({ status: 'sending', recipients: ['sending'], events: [] })
})

test('many records of facts at once, in opposite orders, wait for each other and lose nothing', async () => {
  const ids = await Promise.all(
    Array.from({ length: 20 }, () => seedEmail(database.db, { accountId, at, to: ['f@example.com', 'g@example.com'] })),
  )
  for (const id of ids) await begin(id, [0, 1])
  const facts = ids.flatMap((id) => [accepted(id, 0), accepted(id, 1)])
  await Promise.all([record(...facts), record(...facts.toReversed()), ...facts.map((fact) => record(fact))])
  for (const id of ids) {
    const { status, events } = await seen(id)
    expect({ status, events: events.length }).toEqual({ status: 'delivered', events: 4 })
  }
})
