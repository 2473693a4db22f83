import type { ColumnType } from 'kysely'

/** Who changed what, when and from where. Entries never change. */
export type AuditLogTable = {
  account_id: string
  id: string
  created_at: Date
  action: string
  actor_type: string
  /** Null: the command line. */
  actor_id: string | null
  /** The name at that time. */
  actor_name: string
  target_type: string
  target_id: string
  target_name: string | null
  ip_address: string | null
  details: ColumnType<Record<string, string>, string, never>
}
