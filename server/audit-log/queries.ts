import type { Selectable } from 'kysely'
import type { Trx } from '../database/connection.ts'
import type { AuditLogTable } from '../database/tables/audit-log.ts'

export type EntryRow = Selectable<AuditLogTable>

export async function insertEntry(trx: Trx, entry: EntryRow): Promise<void> {
  await trx
    .insertInto('audit_log')
    .values({ ...entry, details: JSON.stringify(entry.details) })
    .execute()
}
