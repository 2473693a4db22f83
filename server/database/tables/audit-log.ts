import type { ColumnType } from 'kysely'
import type { ActorType, AuditAction, AuditTarget } from '../../../contract/audit-actions.ts'

/** Who changed what, when and from where. Entries never change. */
export type AuditLogTable = {
  account_id: string
  id: string
  created_at: Date
  action: AuditAction
  actor_type: ActorType
  /** Null: the command line. */
  actor_id: string | null
  /** The name at that time. */
  actor_name: string
  target_type: AuditTarget
  target_id: string
  target_name: string | null
  ip_address: string | null
  details: ColumnType<Record<string, string>, string, never>
}
