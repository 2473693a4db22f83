/** The users of an identity provider that users are linked to. */
export type UserIdentitiesTable = {
  id: string
  user_id: string
  issuer: string
  subject: string
  /** The user's email address at the provider when they were linked. It proves nothing. Null: it gave none. */
  label: string | null
  created_at: Date
  last_used_at: Date | null
}
