import type { Generated } from 'kysely'
import type { ActorType } from '../../../contract/audit-actions.ts'
import type { Mode } from '../../../contract/mode.ts'

/** The keys of the accounts. Only the SHA-256 of a key and its last characters are stored. */
export type ApiKeysTable = {
  id: string
  account_id: string
  mode: Mode
  name: string
  /** Names of permissions and of sets of permissions. */
  permissions: string[]
  secret_hash: Buffer
  last_four: string
  created_at: Generated<Date>
  revoked_at: Date | null
  created_by_type: Generated<ActorType>
  /** Null: the command line. */
  created_by_id: string | null
  /** Null: never. */
  expires_at: Date | null
  /** Addresses and ranges in canonical form. Empty: any address. */
  allowed_addresses: Generated<string[]>
  last_used_at: Date | null
  last_used_from: string | null
}
