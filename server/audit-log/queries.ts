import { type Selectable, sql } from 'kysely'
import type { Db, Handle, Trx } from '../database/connection.ts'
import type { AuditLogTable } from '../database/tables/audit-log.ts'

export type EntryRow = Selectable<AuditLogTable>

/** Inserts any number of entries: one array for each column, since a statement has 65,535 parameters at most. */
export async function insertEntries(trx: Trx, entries: readonly EntryRow[]): Promise<void> {
  const column = <Name extends keyof EntryRow>(name: Name): EntryRow[Name][] => entries.map((entry) => entry[name])
  await sql`
    INSERT INTO audit_log (account_id, id, created_at, action, actor_type, actor_id, actor_name, target_type, target_id,
      target_name, ip_address, details)
    SELECT * FROM unnest(
      ${column('account_id')}::text[], ${column('id')}::text[], ${column('created_at')}::timestamptz[],
      ${column('action')}::text[], ${column('actor_type')}::text[], ${column('actor_id')}::text[],
      ${column('actor_name')}::text[], ${column('target_type')}::text[], ${column('target_id')}::text[],
      ${column('target_name')}::text[], ${column('ip_address')}::text[],
      ${column('details').map((details) => JSON.stringify(details))}::jsonb[]
    )
  `.execute(trx)
}

export type EntryPage = {
  /** Only entries with lower ids. */
  below: string | undefined
  since: Date | undefined
  until: Date | undefined
  /** Bounds of the ids of entries in the time range. */
  firstId: string | undefined
  lastId: string | undefined
  limit: number
}

/** Returns entries of an account, newest first. */
export async function selectEntries(handle: Handle, accountId: string, page: EntryPage): Promise<EntryRow[]> {
  const { below, since, until, firstId, lastId, limit } = page
  return handle
    .selectFrom('audit_log')
    .selectAll()
    .where('account_id', '=', accountId)
    .$if(below !== undefined, (query) => query.where('id', '<', below ?? ''))
    .$if(firstId !== undefined, (query) => query.where('id', '>=', firstId ?? ''))
    .$if(lastId !== undefined, (query) => query.where('id', '<', lastId ?? ''))
    .$if(since !== undefined, (query) => query.where('created_at', '>=', since as Date))
    .$if(until !== undefined, (query) => query.where('created_at', '<', until as Date))
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
}

/** Deletes up to `limit` entries of all accounts that are older than `until`. Returns how many there were. */
export async function deleteEntries(db: Db, until: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    DELETE FROM audit_log WHERE (account_id, id) IN (
      SELECT account_id, id FROM audit_log WHERE created_at < ${until}
      ORDER BY created_at LIMIT ${limit} FOR UPDATE SKIP LOCKED
    )
  `.execute(db)
  return Number(numAffectedRows ?? 0n)
}
