import type { AuditAction, AuditTarget } from '../../contract/audit-actions.ts'
import type { Trx } from '../database/connection.ts'
import { newId } from '../shared/ids.ts'
import type { Author } from '../shared/scope.ts'
import { type EntryRow, insertEntries } from './queries.ts'

export type NewAuditEntry = {
  accountId: string
  at: Date
  author: Author
  action: AuditAction
  /** The object that was changed, with its name at that time. Null: it has none. */
  target: { type: AuditTarget; id: string; name: string | null }
  /** More about the change. Never a secret. Default: nothing. */
  details?: Readonly<Record<string, string>>
}

/** Writes an entry of the audit log. It exists if and only if `trx` commits, which also makes the change. */
export async function record(trx: Trx, entry: NewAuditEntry): Promise<void> {
  await recordAll(trx, [entry])
}

/** Writes several entries with one statement, in their order. */
export async function recordAll(trx: Trx, entries: readonly NewAuditEntry[]): Promise<void> {
  if (entries.length > 0) await insertEntries(trx, entries.map(toRow))
}

function toRow({ accountId, at, author, action, target, details = {} }: NewAuditEntry): EntryRow {
  return {
    account_id: accountId,
    id: newId('auditEntry', at),
    created_at: at,
    action,
    actor_type: author.actor.type,
    actor_id: author.actor.id,
    actor_name: author.actor.name,
    target_type: target.type,
    target_id: target.id,
    target_name: target.name,
    ip_address: author.ipAddress,
    details,
  }
}
