import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { newId } from '../../server/shared/ids.ts'
import { webhookChannel } from '../../server/webhook-delivery/webhook-changes.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { seedAccount } from '../support/emails.ts'
import { resetToBefore } from '../support/older-schema.ts'

let database: TestDatabase
let listener: pg.Client
let heard: string[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  await resetToBefore(database.db, '0010-webhook-versions')
  listener = new pg.Client({ connectionString: database.connectionString })
  listener.on('notification', ({ payload = '' }) => heard.push(payload))
  await listener.connect()
  await listener.query(`LISTEN ${webhookChannel}`)
})
afterAll(async () => {
  await listener.end()
  await database.drop()
})

const at = new Date('2026-03-01T09:30:00.000Z')

/** As a process of before there were versions does. */
async function addWebhook(accountId: string): Promise<string> {
  const id = newId('webhook', at)
  await sql`
    INSERT INTO webhooks (id, account_id, url, events, secret)
    VALUES (${id}, ${accountId}, 'https://example.com/', '{email.sent}', 'old')
  `.execute(database.db)
  return id
}

/** Returns the notifications since the last call. PostgreSQL sends them with the response to a query. */
async function told(): Promise<string[]> {
  await listener.query('SELECT 1')
  const all = heard
  heard = []
  return all
}

test('the version of a webhook grows with what says where it leads and how it is signed for, and that is told', async () => {
  const { db } = database
  const accountId = await seedAccount(db, at)
  const ids = [await addWebhook(accountId)]
  await migrateToLatest(db)
  ids.push(await addWebhook(accountId))
  const versionOf = async (id: string) =>
    (await db.selectFrom('webhooks').select('version').where('id', '=', id).executeTakeFirst())?.version

  for (const id of ids) {
    expect(await versionOf(id)).toBe(1)
    const deciding = [
      `url = 'https://example.org/'`,
      `status = 'disabled', disabled_reason = 'gone'`,
      `status = 'enabled', disabled_reason = NULL, slow = false`,
      `secret = 'new'`,
      `previous_secret = 'old'`,
      'previous_secret_expires_at = now()',
      `earlier_secrets = '{older}'`,
      'earlier_secrets_expire_at = ARRAY[now()]',
      `url = 'https://example.net/', secret = 'newer', previous_secret = 'new'`,
    ]
    for (const set of deciding) await sql`UPDATE webhooks SET ${sql.raw(set)} WHERE id = ${id}`.execute(db)
    const versions = deciding.map((_, index) => index + 2)
    expect(await told()).toEqual(versions.map((version) => `${id} ${version}`))

    for (const set of [
      'slow = true, failing_since = now(), failing_attempts = 3, updated_at = now()',
      `events = '{email.opened}', description = 'Mine', metadata = '{"a":"b"}'`,
      'url = url, status = status, secret = secret, previous_secret = previous_secret',
    ]) {
      await sql`UPDATE webhooks SET ${sql.raw(set)} WHERE id = ${id}`.execute(db)
    }
    expect(await told()).toEqual([])
    expect(await versionOf(id)).toBe(versions.at(-1))
  }

  // Nothing is told of what was not committed.
  await db
    .transaction()
    .execute(async (trx) => {
      await trx.deleteFrom('webhooks').execute()
      throw new Error('undone')
    })
    .catch(() => undefined)
  expect(await told()).toEqual([])

  const [first = '', second = ''] = ids
  await db.deleteFrom('webhooks').where('id', '=', first).execute()
  expect(await told()).toEqual([`${first} Infinity`])
  await db.deleteFrom('accounts').where('id', '=', accountId).execute()
  expect(await told()).toEqual([`${second} Infinity`])
})
