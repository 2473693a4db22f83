import { type Selectable, sql } from 'kysely'
import type { Db, Handle, Trx } from '../database/connection.ts'
import { inTransaction } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import type { ContactPropertiesTable } from '../database/tables/people.ts'
import type { DeclaredProperty } from './property-values.ts'

export type PropertyRow = Selectable<ContactPropertiesTable>

const selectDeclared = prepare<{ accountId: string }, DeclaredProperty>({ name: 'find_properties' })`
  SELECT key, type, fallback FROM contact_properties
  WHERE account_id = ${'accountId'} AND deleted_at IS NULL ORDER BY key
`

/** Returns the declared properties of an account, by key: at most 100. */
export function selectDeclaredProperties(handle: Handle, accountId: string): Promise<DeclaredProperty[]> {
  return selectDeclared(handle, { accountId })
}

const lockDeclared = prepare<{ accountId: string }, DeclaredProperty>({ name: 'lock_properties' })`
  SELECT key, type, fallback FROM contact_properties
  WHERE account_id = ${'accountId'} AND deleted_at IS NULL ORDER BY key FOR KEY SHARE
`

/** Returns the declared properties as `selectDeclaredProperties`, which then cannot be deleted before the commit. */
export function lockDeclaredProperties(trx: Trx, accountId: string): Promise<DeclaredProperty[]> {
  return lockDeclared(trx, { accountId })
}

/** Returns all properties of an account by key, with those that are being deleted. */
export async function selectProperties(handle: Handle, accountId: string): Promise<PropertyRow[]> {
  return handle
    .selectFrom('contact_properties')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('key')
    .execute()
}

export async function insertProperty(
  trx: Trx,
  property: { accountId: string; key: string; type: PropertyRow['type']; fallback: PropertyRow['fallback']; at: Date },
): Promise<PropertyRow> {
  return trx
    .insertInto('contact_properties')
    .values({
      account_id: property.accountId,
      key: property.key,
      type: property.type,
      fallback: jsonOf(property.fallback),
      created_at: property.at,
      updated_at: property.at,
      deleted_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Locks a declared property for a change. */
export async function lockProperty(trx: Trx, accountId: string, key: string): Promise<PropertyRow | undefined> {
  return trx
    .selectFrom('contact_properties')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('key', '=', key)
    .where('deleted_at', 'is', null)
    .forNoKeyUpdate()
    .executeTakeFirst()
}

export async function updateProperty(
  trx: Trx,
  { accountId, key, fallback, at }: { accountId: string; key: string; fallback: PropertyRow['fallback']; at: Date },
): Promise<PropertyRow> {
  return trx
    .updateTable('contact_properties')
    .set({ fallback: jsonOf(fallback), updated_at: at })
    .where('account_id', '=', accountId)
    .where('key', '=', key)
    .returningAll()
    .executeTakeFirstOrThrow()
}

function jsonOf(value: PropertyRow['fallback']): string | null {
  return value === null ? null : JSON.stringify(value)
}

/**
 * Marks a property as deleted. Waits for the transactions that write values of it: when this has committed, no more are
 * written. Returns false when there is no such property.
 */
export async function markPropertyDeleted(trx: Trx, accountId: string, key: string, at: Date): Promise<boolean> {
  // FOR UPDATE, since an UPDATE of other columns would not wait for the key share of the writers.
  const { rows } = await sql`
    SELECT FROM contact_properties WHERE account_id = ${accountId} AND key = ${key} AND deleted_at IS NULL FOR UPDATE
  `.execute(trx)
  if (rows.length === 0) return false
  await trx
    .updateTable('contact_properties')
    .set({ deleted_at: at })
    .where('account_id', '=', accountId)
    .where('key', '=', key)
    .execute()
  return true
}

/** A property that is deleted and whose values are still there. */
export type DeletedProperty = { account_id: string; key: string }

/** Returns deleted properties of all accounts whose values people may still have. */
export async function selectDeletedProperties(handle: Handle, limit: number): Promise<DeletedProperty[]> {
  return handle
    .selectFrom('contact_properties')
    .select(['account_id', 'key'])
    .where('deleted_at', 'is not', null)
    .orderBy('account_id')
    .orderBy('key')
    .limit(limit)
    .execute()
}

/** People looked at by one statement, which holds its locks for some milliseconds. */
const peopleAtOnce = 2_000

/**
 * Takes the values of a deleted property from the next 2,000 people, and forgets the property behind the last of them.
 * Returns false when that is done.
 */
export async function clearNextValues(db: Db, { account_id: accountId, key }: DeletedProperty): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    const { rows } = await sql<{ looked: number; last: string | null }>`
      WITH page AS MATERIALIZED (
        SELECT id, properties ? ${key} AS has_value FROM subscribers
        WHERE (account_id, id) > (${accountId}, (
          SELECT cleared_to FROM contact_properties
          WHERE account_id = ${accountId} AND key = ${key} AND deleted_at IS NOT NULL
        )) AND account_id <= ${accountId}
        ORDER BY account_id, id LIMIT ${peopleAtOnce}
      ), locked AS MATERIALIZED (
        -- Ordered by id, as all code does that locks several people, which prevents deadlocks.
        SELECT id FROM subscribers WHERE id = ANY(ARRAY(SELECT id FROM page WHERE has_value))
        ORDER BY id FOR NO KEY UPDATE
      ), cleared AS (
        UPDATE subscribers SET properties = properties - ${key}::text WHERE id = ANY(ARRAY(SELECT id FROM locked))
      )
      SELECT count(*)::int AS looked, max(id) AS last FROM page
    `.execute(trx)
    const [{ looked, last } = { looked: 0, last: null }] = rows
    const property = trx
      .selectFrom('contact_properties')
      .select('key')
      .where('account_id', '=', accountId)
      .where('key', '=', key)
      .where('deleted_at', 'is not', null)
    // Last: who waits for a person never holds the property.
    if (looked < peopleAtOnce || last === null) {
      await trx
        .deleteFrom('contact_properties')
        .where('account_id', '=', accountId)
        .where('key', 'in', property)
        .execute()
      return false
    }
    await trx
      .updateTable('contact_properties')
      .set({ cleared_to: last })
      .where('account_id', '=', accountId)
      .where('key', 'in', property)
      .execute()
    return true
  })
}
