import type { Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

/** The keys of the accounts. The key itself is not kept, only its SHA-256 and its end. */
export type ApiKeysTable = {
  id: string
  account_id: string
  mode: Mode
  name: string
  /** Names of permissions and of sets of them. */
  permissions: string[]
  secret_hash: Buffer
  last_four: string
  created_at: Generated<Date>
  revoked_at: Date | null
}
