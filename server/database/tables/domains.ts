import type { Generated, JSONColumnType } from 'kysely'
import type { DomainRecord } from '../../../contract/domains.ts'

export type DomainsTable = {
  id: string
  account_id: string
  /** Lower case, A-labels. */
  name: string
  /** The host of the return path, such as `send.example.com`. */
  return_path: string
  status: Generated<'pending' | 'verified' | 'failed'>
  rsa_selector: string
  /** Base64 of the key as the DNS record carries it. */
  rsa_public_key: string
  /** See `server/private-keys.ts`. */
  rsa_private_key: Buffer
  ed25519_selector: string
  ed25519_public_key: string
  ed25519_private_key: Buffer
  /** What the last check found of each record. */
  findings: JSONColumnType<Partial<Record<DomainRecord['purpose'], Pick<DomainRecord, 'status' | 'hint'>>>>
  /** Since when its records are waited for; of meaning while they are. */
  pending_since: Generated<Date>
  /** Scheduled checks in a row that did not find all that is required. */
  check_count: Generated<number>
  /** Null: not checked any more by itself. */
  next_check_at: Date | null
  last_checked_at: Date | null
  verified_at: Date | null
  created_at: Generated<Date>
  updated_at: Generated<Date>
}
