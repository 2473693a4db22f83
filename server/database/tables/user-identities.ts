/** The users of an identity provider that users are linked to. */
export type UserIdentitiesTable = {
  id: string
  user_id: string
  issuer: string
  subject: string
  /** What the provider called the user when they were linked. It proves nothing. */
  label: string | null
  created_at: Date
  last_used_at: Date | null
}
