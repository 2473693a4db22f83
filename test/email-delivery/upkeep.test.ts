import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { reconcileEmails } from '../../server/email-delivery/reconcile.ts'
import { deleteOldEmails } from '../../server/email-delivery/retention.ts'
import { pairsOf } from '../../server/emails/metadata.ts'
import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount, seedEmail } from '../support/emails.ts'

const at = new Date('2026-03-01T09:30:00.000Z')
const dayMs = 24 * 3_600_000

let database: TestDatabase
let queue: Queue
let accountId: string

beforeAll(async () => {
  database = await createTestDatabase()
  accountId = await seedAccount(database.db, at)
  const { connectionString } = database
  const fail = (error: Error) => {
    throw error
  }
  queue = await startQueue({ connectionString, works: false, onError: fail })
})
afterAll(async () => {
  await queue.stop()
  await database.drop()
})

const seed = (when: Date, status: 'delivered' | 'queued' | 'scheduled') =>
  seedEmail(database.db, { accountId, at: when, to: ['ada@example.com'] }).then(async (id) => {
    await database.db.updateTable('emails').set({ status }).where('id', '=', id).execute()
    return id
  })

test('emails past their retention go with all that is theirs; those that wait stay, and the younger ones', async () => {
  const { db } = database
  const old = await seed(at, 'delivered')
  const waiting = await seed(at, 'scheduled')
  const young = await seed(new Date(at.getTime() + 2 * dayMs), 'delivered')
  expect(await deleteOldEmails(db, { since: new Date(0), until: new Date(at.getTime() + dayMs) })).toBe(1)
  const left = await db.selectFrom('emails').select('id').orderBy('id').execute()
  expect(left.map(({ id }) => id).sort()).toEqual([waiting, young].sort())
  expect(await db.selectFrom('email_contents').select('email_id').where('email_id', '=', old).execute()).toEqual([])
})

test('what an email is found by goes with it, and that of the others stays', async () => {
  const { db } = database
  // Identifiers never go back in time.
  const madeAt = new Date(at.getTime() + 5 * dayMs)
  const until = new Date(madeAt.getTime() + dayMs)
  const pairs = pairsOf({ customer: '42', plan: 'pro' })
  const seedWithPairs = async (when: Date, status: 'delivered' | 'scheduled') => {
    const id = await seed(when, status)
    const rows = pairs.map((pair) => ({ account_id: accountId, pair, email_id: id }))
    await db.insertInto('email_metadata').values(rows).execute()
    return id
  }
  await seedWithPairs(madeAt, 'delivered')
  const waiting = await seedWithPairs(madeAt, 'scheduled')
  const young = await seedWithPairs(until, 'delivered')
  expect(await deleteOldEmails(db, { since: madeAt, until })).toBe(1)
  const left = await db.selectFrom('email_metadata').select(['email_id', 'pair']).execute()
  expect(left.map(({ email_id, pair }) => `${email_id} ${pair}`).toSorted()).toEqual(
    [waiting, young].flatMap((id) => pairs.map((pair) => `${id} ${pair}`)).toSorted(),
  )
})

test('an email that was scheduled far ahead is kept as long as any other after it was sent', async () => {
  const { db } = database
  // Identifiers never go back in time.
  const madeAt = new Date(at.getTime() + 10 * dayMs)
  const until = new Date(madeAt.getTime() + dayMs)
  const [justSent, sentLongAgo] = [await seed(madeAt, 'delivered'), await seed(madeAt, 'delivered')]
  const complete = (id: string, completed_at: Date) =>
    db.updateTable('emails').set({ completed_at }).where('id', '=', id).execute()
  await complete(justSent, until)
  await complete(sentLongAgo, new Date(until.getTime() - 1))
  expect(await deleteOldEmails(db, { since: madeAt, until })).toBe(1)
  const left = await db.selectFrom('emails').select('id').where('id', 'in', [justSent, sentLongAgo]).execute()
  expect(left).toEqual([{ id: justSent }])
})

test('an email that waits without a job is given one, for its time; one that has a job or has ended is not', async () => {
  const { db } = database
  const lost = await seed(at, 'queued')
  const held = await seed(at, 'queued')
  const ended = await seed(at, 'delivered')
  await inTransaction(db, (trx) => queue.emails.put(trx, [{ emailId: held, accountId, dueAt: null }]))
  expect(await queue.emails.missing(db, [lost, held, ended])).toEqual([lost, ended])
  expect(await reconcileEmails({ db, queue })).toBeGreaterThanOrEqual(1)
  expect(await queue.emails.missing(db, [lost, held, ended])).toEqual([ended])
  expect(await reconcileEmails({ db, queue })).toBe(0)
  const claimed = (await queue.emails.claim('fresh', 'single', 10)).map(({ emailId }) => emailId)
  expect(claimed).toEqual(expect.arrayContaining([lost, held]))
  expect(claimed).not.toContain(ended)
})

test('an email of a campaign that waits without a job is given one in bulk', async () => {
  const { db } = database
  const lost = await seed(at, 'queued')
  await db
    .updateTable('emails')
    .set({ campaign_id: newId('campaign', at) })
    .where('id', '=', lost)
    .execute()
  expect(await reconcileEmails({ db, queue })).toBeGreaterThanOrEqual(1)
  expect((await queue.emails.claim('fresh', 'single', 100)).map(({ emailId }) => emailId)).not.toContain(lost)
  expect((await queue.emails.claim('fresh', 'bulk', 100)).map(({ emailId }) => emailId)).toEqual([lost])
})
