import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createEmailWorld, type EmailWorld, good } from '../support/worlds/emails.ts'

let world: EmailWorld

let traces = 0

beforeAll(async () => {
  world = await createEmailWorld({ traceparent: () => (traces === 0 ? null : `trace ${traces++}`) })
})
afterAll(() => world.end())

const count = 40

/** By which transactions emails were stored. */
async function transactionsOf(ids: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{
    by: string
  }>`SELECT xmin::text AS by FROM emails WHERE id = ANY(${ids}::text[])`.execute(world.db)
  return rows.map(({ by }) => by)
}

test('small emails of requests at once share transactions, and each is stored, answered and queued as if alone', async () => {
  const { db, live, emails } = world
  const subjects = Array.from({ length: count }, (_, index) => `Number ${index}`)
  const answers = await Promise.all(subjects.map((subject) => emails.send(db, live, { ...good, subject })))
  const stored = await Promise.all(answers.map(({ id }) => emails.get(db, live, id)))
  expect(stored.map(({ subject }) => subject)).toEqual(subjects)
  const ids = answers.map(({ id }) => id)
  expect(await world.due()).toEqual(ids.toSorted())
  // The first began alone, and the others waited for it.
  expect(new Set(await transactionsOf(ids)).size).toBe(2)
})

test('each is of the account and the mode of its own key, whoever sends at the same moment', async () => {
  const { db, live, stranger, emails, domains } = world
  await domains.create(db, { ...live, accountId: stranger }, { name: 'shop.test' })
  const keys = [live, world.test, { ...live, accountId: stranger }, { ...world.test, accountId: stranger }]
  const senders = Array.from({ length: count }, () => keys).flat()
  const answers = await Promise.all(senders.map((sender) => emails.send(db, sender, good)))
  const expected = senders.map(({ accountId, mode }) => ({
    account_id: accountId,
    mode,
    status: mode === 'test' ? 'validated' : 'queued',
  }))
  expect(answers.map(({ status }) => status)).toEqual(expected.map(({ status }) => status))
  const rows = await db.selectFrom('emails').select(['id', 'account_id', 'mode', 'status']).execute()
  const stored = new Map(rows.map(({ id, ...row }) => [id, row]))
  expect(answers.map(({ id }) => stored.get(id))).toEqual(expected)
  const queued = answers.filter((_, index) => senders[index]?.mode === 'live')
  expect(await world.due()).toEqual(queued.map(({ id }) => id).toSorted())
})

test('each is refused for itself', async () => {
  const { db, live, emails } = world
  const sent = [
    good,
    { ...good, from: 'a@elsewhere.example' },
    { ...good, audienceId: 'aud_00000000000000000000000000' },
  ]
  const answers = await Promise.allSettled([...sent, ...sent].map((email) => emails.send(db, live, email)))
  const codes = answers.map((answer) => (answer.status === 'fulfilled' ? answer.value.status : answer.reason.code))
  const each = ['queued', 'domain_not_verified', 'audience_not_found']
  expect(codes).toEqual([...each, ...each])
  await world.due()
})

test('what the database takes of one email not, fails that one alone', async () => {
  const { db, live, emails } = world
  await sql`ALTER TABLE emails ADD CONSTRAINT no_poison CHECK (subject <> 'poison')`.execute(db)
  try {
    const subjects = ['a', 'b', 'poison', 'c']
    const answers = await Promise.allSettled(subjects.map((subject) => emails.send(db, live, { ...good, subject })))
    expect(answers).toMatchObject([
      { status: 'fulfilled' },
      { status: 'fulfilled' },
      { reason: { constraint: 'no_poison' } },
      { status: 'fulfilled' },
    ])
    const { data } = await emails.list(db, live, { limit: 3 })
    expect(data.map(({ subject }) => subject)).toEqual(['c', 'b', 'a'])
    expect(await world.due()).toHaveLength(3)
  } finally {
    await sql`ALTER TABLE emails DROP CONSTRAINT no_poison`.execute(db)
  }
})

test('what is large, and what is in a transaction already, is stored by itself', async () => {
  const { db, live, emails } = world
  const large = { ...good, text: 'x'.repeat(65_537) }
  const withFile = { ...good, attachments: [{ filename: 'a.txt', content: 'YQ==' }] }
  const answers = await Promise.all([
    ...[1, 2, 3].map(() => emails.send(db, live, large)),
    ...[1, 2, 3].map(() => emails.send(db, live, withFile)),
    ...[1, 2, 3].map(() => inTransaction(db, (trx) => emails.send(trx, live, good))),
  ])
  expect(new Set(await transactionsOf(answers.map(({ id }) => id))).size).toBe(9)
  await world.due()
})

test('one that is refused in a transaction undoes it', async () => {
  const { db, live, emails } = world
  const sending = inTransaction(db, async (trx) => {
    await emails.send(trx, live, good)
    await emails.send(trx, live, { ...good, from: 'a@elsewhere.example' })
  })
  expect(await refusal(sending)).toBe('domain_not_verified')
  expect(await world.due()).toEqual([])
})

test('a request with a trace of its own is stored by itself, so that its events are of that trace', async () => {
  const { db, live, emails } = world
  traces = 1
  const answers = await Promise.all([1, 2, 3].map(() => emails.send(db, live, good)))
  traces = 0
  expect(new Set(await transactionsOf(answers.map(({ id }) => id))).size).toBe(3)
  await world.due()
})

test('one whose writing is held up holds up none that comes after it', async () => {
  const { db, live, emails } = world
  await sql`
    CREATE FUNCTION wait_for_us() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$
  `.execute(db)
  await sql`
    CREATE TRIGGER held BEFORE INSERT ON emails FOR EACH ROW WHEN (NEW.subject = 'held') EXECUTE FUNCTION wait_for_us()
  `.execute(db)
  const holding = await db.startTransaction().execute()
  await sql`SELECT pg_advisory_xact_lock(7)`.execute(holding)
  const held = emails.send(db, live, { ...good, subject: 'held' })
  const others = await Promise.all(['a', 'b'].map((subject) => emails.send(db, live, { ...good, subject })))
  expect(others).toMatchObject([{ status: 'queued' }, { status: 'queued' }])
  await holding.rollback().execute()
  expect(await held).toMatchObject({ status: 'queued' })
  expect(await world.due()).toHaveLength(3)
})
