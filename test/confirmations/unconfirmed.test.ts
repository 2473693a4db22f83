import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lockContact } from '../../server/audiences/contact-queries.ts'
import { deleteUnconfirmed } from '../../server/audiences/unconfirmed.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { newId } from '../../server/shared/ids.ts'
import { refusal } from '../support/worlds/audiences.ts'
import { createEmailWorld, type EmailWorld, hourMs } from '../support/worlds/emails.ts'

/*
 * Contacts that do not confirm are deleted in the background.
 */

let world: EmailWorld
let audienceId: string
beforeAll(async () => {
  world = await createEmailWorld()
  const doubleOptIn = { from: 'Shop <news@shop.test>' }
  audienceId = (await world.audiences.create(world.db, world.live, { name: 'Readers', doubleOptIn })).id
})
afterAll(() => world.end())

const dayMs = 24 * hourMs
const clear = () => deleteUnconfirmed({ db: world.db, clock: world.time.clock, outbox: world.outbox })
const add = (name: string) => world.contacts.add(world.db, world.live, audienceId, { email: `${name}@example.org` })
const isThere = async (key: { audienceId: string; subscriberId: string }) =>
  (await refusal(world.contacts.get(world.db, world.account, key))) === 'not refused'
async function deletedContacts() {
  const events = await world.emitted()
  return events.flatMap(([type, data]) => (type === 'contact.deleted' ? [data] : []))
}

test('a contact is deleted 30 days after it was asked to confirm, and the person stays', async () => {
  const { db, live, account, contacts, subscribers, time } = world
  const never = await add('never')
  const again = await add('again')
  const active = await add('active')
  await contacts.update(db, live, active, { status: 'active' })
  const left = await add('left')
  await contacts.update(db, live, left, { status: 'unsubscribed' })
  await time.advance(30 * dayMs - 1)
  expect(await clear()).toBe(0)
  await contacts.askToConfirm(db, live, again)
  await deletedContacts()
  await time.advance(2)

  expect(await clear()).toBe(1)
  expect(await deletedContacts()).toEqual([{ subscriberId: never.subscriberId, audienceId }])
  expect(await Promise.all([never, again, active, left].map(isThere))).toEqual([false, true, true, true])
  expect(await subscribers.get(db, account, never.subscriberId)).toMatchObject({ status: 'active' })
  expect(await clear()).toBe(0)
  const { status, subscriberId } = await add('never')
  expect({ status, subscriberId }).toEqual({ status: 'pending', subscriberId: never.subscriberId })
  await time.advance(30 * dayMs + 1)
  expect(await clear()).toBe(2)
})

test('a contact whom nothing could be sent to is deleted 30 days after it was added', async () => {
  const { db, account, suppressions, time } = world
  await suppressions.create(db, account, { address: 'suppressed@example.org' })
  const contact = await add('suppressed')
  expect(contact).toMatchObject({ status: 'pending', confirmationSentAt: null })
  await time.advance(30 * dayMs - 1)
  expect(await clear()).toBe(0)
  await time.advance(2)
  expect(await clear()).toBe(1)
  expect(await isThere(contact)).toBe(false)
})

test('a contact that is being changed is passed over, and stays where that confirms it', async () => {
  const { db, live, account, contacts, time } = world
  const [confirms, other] = [await add('confirms'), await add('other')]
  await time.advance(31 * dayMs)
  await inTransaction(db, async (trx) => {
    await lockContact(trx, account, confirms)
    await contacts.update(trx, live, confirms, { status: 'active' })
    // It does not wait for the lock. If it did, this test would time out: the lock is held until this function returns.
    expect(await clear()).toBe(1)
  })
  expect(await clear()).toBe(0)
  expect(await Promise.all([confirms, other].map(isThere))).toEqual([true, false])
})

test('contacts of several accounts are deleted in several transactions, with an event for each', async () => {
  const { db, account, stranger, time } = world
  const at = time.clock.now()
  const counts = { [account]: 1_400, [stranger]: 700 }
  for (const [owner, count] of Object.entries(counts)) {
    const ids = Array.from({ length: count }, () => newId('subscriber', at))
    const { id: list } = await world.audiences.create(db, { accountId: owner, mode: 'live' }, { name: 'Many' })
    await sql`
      WITH person AS (
        INSERT INTO subscribers (id, account_id, email, email_key, created_at, updated_at)
        SELECT id, ${owner}, id || '@example.org', id || '@example.org', ${at}, ${at} FROM unnest(${ids}::text[]) AS i (id)
        RETURNING id
      )
      INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
      SELECT ${list}, id, ${owner}, 'pending', ${at}, ${at} FROM person
    `.execute(db)
  }
  await time.advance(31 * dayMs)
  expect(await clear()).toBe(2_100)
  const { rows } = await sql`
    SELECT account_id, count(*)::int AS count FROM events
    WHERE type = 'contact.deleted' AND created_at >= ${time.clock.now()} GROUP BY account_id
  `.execute(db)
  expect(Object.fromEntries(rows.map((row) => [Object(row).account_id, Object(row).count]))).toEqual(counts)
})

test('the contacts to delete are found by an index', async () => {
  const { db } = world
  const plan = await inTransaction(db, async (trx) => {
    await sql`SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off`.execute(
      trx,
    )
    const { rows } = await sql<{ 'QUERY PLAN': string }>`
      EXPLAIN SELECT ctid FROM contacts WHERE status = 'pending' AND coalesce(confirmation_sent_at, created_at) < now()
      ORDER BY coalesce(confirmation_sent_at, created_at) LIMIT 1000 FOR UPDATE SKIP LOCKED
    `.execute(trx)
    return rows.map((row) => row['QUERY PLAN']).join('\n')
  })
  expect(plan).toContain('Index Scan using contacts_pending')
})
