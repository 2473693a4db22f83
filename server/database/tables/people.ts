import type { ColumnType, Generated } from 'kysely'

/** The values of a person by the key of their property. */
export type Properties = Readonly<Record<string, string | number | boolean>>

export type SubscribersTable = {
  id: string
  account_id: string
  email: string
  /** The address in lower case, unique in an account. */
  email_key: string
  first_name: string | null
  last_name: string | null
  status: Generated<'active' | 'unsubscribed'>
  /** Written as JSON text. May hold values of a property that was deleted, until they are taken away. */
  properties: ColumnType<Properties, string | undefined, string>
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

/** How the people of an audience are asked to confirm. */
export type DoubleOptIn = {
  /** As a mail header has it. */
  from: string
  /** Null: the usual one. */
  subject: string | null
  /** The text before the button of the email. Null: only the usual sentence. */
  text: string | null
}

export type AudiencesTable = {
  id: string
  account_id: string
  name: string
  description: string | null
  /** Written as JSON text. Null: people are not asked. */
  double_opt_in: ColumnType<DoubleOptIn | null, string | null | undefined, string | null>
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

export type ContactsTable = {
  audience_id: string
  subscriber_id: string
  account_id: string
  /** `pending`: the person was asked to confirm, and has not yet. */
  status: 'active' | 'unsubscribed' | 'pending'
  /** Emails that asked the person to confirm. */
  confirmations_sent: Generated<number>
  /** When the last of them was made. */
  confirmation_sent_at: Generated<Date | null>
  created_at: Generated<Date>
  updated_at: Generated<Date>
}

export type ContactPropertiesTable = {
  account_id: string
  key: string
  type: 'string' | 'number' | 'boolean' | 'date'
  /** Written as JSON text. */
  fallback: ColumnType<string | number | boolean | null, string | null, string | null>
  created_at: Date
  updated_at: Date
  /** Not null: it is deleted, and its values are being taken from people. */
  deleted_at: Date | null
  /** The last person whose values were looked at for that. */
  cleared_to: Generated<string>
}
