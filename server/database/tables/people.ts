import type { Generated } from 'kysely'

export type SubscribersTable = {
  id: string
  account_id: string
  email: string
  /** The address in lower case, unique in an account. */
  email_key: string
  first_name: string | null
  last_name: string | null
  status: Generated<'active' | 'unsubscribed'>
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

export type AudiencesTable = {
  id: string
  account_id: string
  name: string
  description: string | null
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

export type ContactsTable = {
  audience_id: string
  subscriber_id: string
  account_id: string
  status: 'active' | 'unsubscribed'
  created_at: Generated<Date>
  updated_at: Generated<Date>
}
