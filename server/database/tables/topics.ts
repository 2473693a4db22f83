/** Topics that people can subscribe to or unsubscribe from. */
export type TopicsTable = {
  account_id: string
  id: string
  name: string
  description: string | null
  /** Whether people get it who chose nothing: `opt_out`, they do; `opt_in`, they do not. */
  default_choice: 'opt_in' | 'opt_out'
  created_at: Date
  updated_at: Date
  /** Not null: it is deleted, and its choices are being taken away. */
  deleted_at: Date | null
}

/** How pages for the readers of an account look. */
export type AccountBrandsTable = {
  account_id: string
  name: string | null
  /** As `#rrggbb`. */
  accent_color: string | null
  text: string | null
  updated_at: Date
}

/** The choice of a person about a topic. */
export type TopicChoicesTable = {
  account_id: string
  subscriber_id: string
  topic_id: string
  subscribed: boolean
  changed_at: Date
}
