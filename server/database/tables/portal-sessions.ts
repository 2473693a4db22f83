import type { ActorType } from '../../../contract/audit-actions.ts'
import type { Mode } from '../../../contract/mode.ts'
import type { ColorScheme } from '../../../contract/portal-sessions.ts'

/** Sessions of the portal. Only the SHA-256 of their codes and tokens is stored. */
export type PortalSessionsTable = {
  account_id: string
  id: string
  mode: Mode
  customer: string
  /** The event types that the customer may choose. Null: all. */
  event_types: string[] | null
  /** Null: as the operator has set. */
  accent_color: string | null
  color_scheme: ColorScheme | null
  /** Of its link. Null: the link was used. */
  code_hash: Buffer | null
  /** Null: the link was not used yet. */
  token_hash: Buffer | null
  created_by_type: ActorType
  created_by_id: string
  created_at: Date
  /** When its link was used. */
  opened_at: Date | null
  /** To the minute. */
  last_used_at: Date | null
  /** When it ends if it is not used before. */
  ends_at: Date
  /** When it ends at the latest. */
  expires_at: Date
}
