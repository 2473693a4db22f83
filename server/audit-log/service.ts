import type { AuditEntry, AuditLogQuery } from '../../contract/audit-log.ts'
import type { Page } from '../../contract/pagination.ts'
import type { Handle } from '../database/connection.ts'
import { firstIdAt, idAboveThoseBefore } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import { type EntryRow, selectEntries } from './queries.ts'

/** Reading the audit log. It is written by `record`. */
export type AuditLogService = {
  /** Returns entries of both modes, newest first. */
  list(handle: Handle, accountId: string, query: AuditLogQuery): Promise<Page<AuditEntry>>
}

export function createAuditLogService(): AuditLogService {
  return {
    async list(handle, accountId, { limit, cursor, ...range }) {
      const since = range.since === undefined ? undefined : new Date(range.since)
      const until = range.until === undefined ? undefined : new Date(range.until)
      const rows = await selectEntries(handle, accountId, {
        below: decodeCursor('auditEntry', cursor),
        since,
        until,
        firstId: since && firstIdAt('auditEntry', since),
        lastId: until && idAboveThoseBefore('auditEntry', until),
        limit: limit + 1,
      })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toEntry })
    },
  }
}

function toEntry(row: EntryRow): AuditEntry {
  return {
    id: row.id,
    at: row.created_at.toISOString(),
    actor: { type: row.actor_type, id: row.actor_id, name: row.actor_name },
    action: row.action,
    target: { type: row.target_type, id: row.target_id, name: row.target_name },
    ipAddress: row.ip_address,
    details: row.details,
  }
}
