import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { createReceiver } from '../../server/bounces/receive.ts'
import type { Db } from '../../server/database/connection.ts'
import { recordFacts } from '../../server/email-delivery/record-facts.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { addressKey } from '../../server/message/address.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { createInboundMessageService } from '../../server/stored-messages/service.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'
import { live } from '../support/scope.ts'

/* The effects of a returned message on its email, and which messages are kept for people. */

const tokens = createMailTokens(Buffer.alloc(32, 7))
const outbox = createOutbox({ clock: systemClock, wake: () => undefined })

let database: TestDatabase
let db: Db
let accountId: string
let counted: string[]

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  accountId = await seedAccount(db, new Date())
})
beforeEach(async () => {
  await db.deleteFrom('inbound_messages').execute()
  counted = []
})
afterAll(() => database.drop())

/** Has a message of the corpus come back to an email of one recipient that a server has taken. */
async function comesBack(name: string, times = 1): Promise<string> {
  const emailId = await seedEmail(db, { accountId, at: new Date(), to: ['ada@example.org'] })
  const taken = { status: 'accepted', accepted_at: new Date() } as const
  await db.updateTable('email_recipients').set(taken).where('email_id', '=', emailId).execute()
  const receive = createReceiver({
    db,
    clock: systemClock,
    tokens,
    keyOf: addressKey,
    record: async (facts) => {
      await recordFacts(db, { outbox, source: 'notification' }, facts)
    },
    onMessage: (kind) => counted.push(kind),
  })
  const recipients = [tokens.returnPath({ emailId, position: null }, 'send.example.com')]
  const content = readFileSync(join(import.meta.dirname, 'corpus', `${name}.eml`))
  for (let time = 0; time < times; time++) await receive({ mailFrom: '', recipients, content })
  return emailId
}

const eventsOf = async (emailId: string) => {
  const rows = await db.selectFrom('events').select(['type', 'body']).orderBy('id').execute()
  return rows.filter(({ body }) => body.includes(emailId)).map(({ type }) => type)
}
const suppressedBy = (emailId: string) =>
  db.selectFrom('suppressions').select(['address', 'reason']).where('email_id', '=', emailId).execute()
const kept = async () => (await createInboundMessageService().list(db, live(accountId), { limit: 20 })).data

test('a bounce of which the letter alone is left counts, though it says to be an automatic answer', async () => {
  const emailId = await comesBack('postfix-text')
  expect(await eventsOf(emailId)).toEqual(['email.bounced'])
  expect(await suppressedBy(emailId)).toEqual([{ address: 'ada@example.org', reason: 'hard_bounce' }])
  expect(counted).toEqual(['dsn'])
})

test.each([
  ['dovecot-delivered', 'delivered', 'delivered', ['email.delivered']],
  ['postfix-relayed', 'relayed', 'sent', []],
  ['sendmail-expanded', 'expanded', 'sent', []],
])(
  'of success, delivered alone is delivered, and all are in the history once: %s',
  async (name, type, status, events) => {
    const emailId = await comesBack(name, 2)
    const email = await db.selectFrom('emails').select('status').where('id', '=', emailId).executeTakeFirstOrThrow()
    const timeline = await db.selectFrom('email_timeline').select('type').where('email_id', '=', emailId).execute()
    expect(timeline.filter((entry) => entry.type === type)).toHaveLength(1)
    expect(email.status).toBe(status)
    expect(await eventsOf(emailId)).toEqual(events)
    expect(counted).toEqual(['dsn', 'dsn'])
  },
)

const reason = 'It tells of a failure, but as an automatic answer, and not of a mail server.'

test.each(['vacation-quotes-a-bounce', 'vacation-quotes-a-report', 'appliance-text'])(
  'an automatic answer that tells of a failure is kept, and costs no address: %s',
  async (name) => {
    const emailId = await comesBack(name)
    expect(await kept()).toMatchObject([{ emailId, reason }])
    expect(await eventsOf(emailId)).toEqual([])
    expect(await suppressedBy(emailId)).toEqual([])
    expect(counted).toEqual(['unreadable'])
  },
)

test.each(['vacation', 'exchange-out-of-office', 'exchange-abwesend'])(
  'an automatic answer is not kept: %s',
  async (name) => {
    await comesBack(name)
    expect(await kept()).toEqual([])
    expect(counted).toEqual(['auto-reply'])
  },
)

test.each(['person-automatic', 'person-abwesen'])(
  'a letter of a person is kept, whatever its subject begins with: %s',
  async (name) => {
    const emailId = await comesBack(name)
    expect(await kept()).toMatchObject([{ emailId }])
    expect(counted).toEqual(['unreadable'])
  },
)
