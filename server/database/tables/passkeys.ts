import type { ColumnType } from 'kysely'

/** The passkeys of users. */
export type PasskeysTable = {
  id: string
  user_id: string
  credential_id: Buffer
  /** COSE. Source: RFC 9052 §7. */
  public_key: Buffer
  /** Of the last signature. 0: the authenticator has none. */
  counter: ColumnType<string, number, number>
  /** How browsers reach the authenticator. */
  transports: string[]
  is_synced: boolean
  name: string
  created_at: Date
  last_used_at: Date | null
  /** When a signature had a counter that was not above the one stored. */
  refused_at: Date | null
}

/** Challenges that were used, until they expire: each is good once. */
export type UsedChallengesTable = {
  challenge_hash: Buffer
  expires_at: Date
}
