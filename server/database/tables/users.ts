import type { Generated, GeneratedAlways } from 'kysely'
import type { Role } from '../../../contract/roles.ts'

/** People who sign in to the dashboard. They belong to no account: see `MembershipsTable`. */
export type UsersTable = {
  id: string
  /** In lower case. */
  email: string
  name: string
  /** Argon2id in the PHC string format. Null: the user has no password, and signs in in other ways. */
  password_hash: string | null
  /** Encrypted. */
  totp_secret: Buffer | null
  /** When the second factor came into use. Null: it is not in use. */
  totp_confirmed_at: Date | null
  /** The newest time step whose code was used. */
  totp_last_step: number | null
  /** Wrong codes since the last right one. */
  totp_failures: Generated<number>
  totp_failed_at: Date | null
  /** When the secret was made. Null: there is none, or it is from before this column. */
  totp_made_at: Date | null
  /** When a link was used that went to the address by email. Null: the address is not verified. */
  email_verified_at: Date | null
  is_operator: Generated<boolean>
  created_at: Date
  last_signed_in_at: Date | null
}

/** Codes that replace one of the second factor, once each: a used one is deleted. */
export type RecoveryCodesTable = {
  user_id: string
  code_hash: Buffer
}

/** The users of the accounts. */
export type MembershipsTable = {
  account_id: string
  user_id: string
  role: Role
  created_at: Date
}

/** Sessions of the dashboard. Only the SHA-256 of their tokens is stored. */
export type UserSessionsTable = {
  id: string
  user_id: string
  token_hash: Buffer
  created_at: Date
  /** To the minute. */
  last_used_at: Date
  /** When it ends at the latest. */
  expires_at: Date
  ip_address: string
  user_agent: string
}

/** Links that work once: a used one is deleted. Only the SHA-256 of their tokens is stored. */
export type UserLinksTable = {
  id: string
  kind: 'first_user' | 'invitation' | 'password_reset'
  token_hash: Buffer
  /** Null: it resets a password. */
  account_id: string | null
  /** Whose password it resets. */
  user_id: string | null
  /** Who is invited. */
  email: string | null
  role: Role | null
  /** The user who invited. */
  created_by: string | null
  created_at: Date
  expires_at: Date
  /** True: it goes to its person by email, and no other person sees it. */
  by_email: Generated<boolean>
  /** When a mail server took the email. */
  emailed_at: Date | null
  /** When the email was refused for good, or given up. */
  email_failed_at: Date | null
}

/** Emails of the service itself to people who sign in. They are emails of no account. */
export type AccountEmailsTable = {
  id: GeneratedAlways<string>
  kind: 'invitation' | 'password_reset'
  /** The account that invites. Null: a reset. */
  account_id: string | null
  /** Null: a reset whose address has not been looked up yet. */
  link_id: string | null
  /** In lower case. */
  email: string
  created_at: Date
  /** When it is tried next. Null: it is done. */
  due_at: Date | null
  attempts: Generated<number>
}

/** Failed tries to sign in, of all processes. */
export type SignInFailuresTable = {
  /** SHA-256 of the network of the client and the address. */
  pair_hash: Buffer
  failures: number
  last_at: Date
}
