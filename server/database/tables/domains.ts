import type { Generated, GeneratedAlways, JSONColumnType } from 'kysely'
import type { DomainRecord } from '../../../contract/domains.ts'

/** The result of the last check of each record. */
type StoredFindings = JSONColumnType<
  Partial<Record<DomainRecord['purpose'], Pick<DomainRecord, 'status' | 'hint'>>>,
  string | undefined
>

export type DomainsTable = {
  id: string
  account_id: string
  /** Lower case, A-labels. */
  name: string
  /** The host of the return path, such as `send.example.com`. */
  return_path: string
  status: Generated<'pending' | 'verified' | 'failed'>
  rsa_selector: string
  /** The public key in base64, as in the DNS record. */
  rsa_public_key: string
  /** See `server/secrets/private-keys.ts`. */
  rsa_private_key: Buffer
  ed25519_selector: string
  ed25519_public_key: string
  ed25519_private_key: Buffer
  findings: StoredFindings
  /** When the wait for its records began. Only meaningful while it waits. */
  pending_since: Generated<Date>
  /** Consecutive scheduled checks that did not find everything required. */
  check_count: Generated<number>
  /** Null: no further scheduled check. */
  next_check_at: Date | null
  last_checked_at: Date | null
  verified_at: Date | null
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

/** Keys of a domain other than the ones that sign. */
export type DomainKeysTable = {
  account_id: string
  domain_id: string
  id: GeneratedAlways<string>
  state: 'next' | 'retired'
  rsa_selector: string
  rsa_public_key: string
  /** Null: retired. */
  rsa_private_key: Buffer | null
  ed25519_selector: string
  ed25519_public_key: string
  ed25519_private_key: Buffer | null
  /** The findings for the records of the next keys. */
  findings: StoredFindings
  created_at: Date
  /** When the records of the next keys are checked. Null: only together with the domain. */
  next_check_at: Date | null
  /** Null: next. */
  retired_at: Date | null
}
