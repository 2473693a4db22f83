import type { Generated } from 'kysely'

export type DeliveriesTable = {
  /** Its UUID is the id of its job in the queue: a delivery has at most one job. */
  id: string
  account_id: string
  webhook_id: string
  event_id: string
  event_type: string
  status: Generated<'pending' | 'succeeded' | 'failed' | 'canceled'>
  attempt_count: Generated<number>
  /** How many attempts of the present run of the schedule are behind it; a resend starts a new run. */
  schedule_position: Generated<number>
  /** Grows when a delivery that has ended is sent again. An attempt of an earlier run changes only the log. */
  run: Generated<number>
  next_attempt_at: Date | null
  /** When the latest attempt was due. Null: not known. Of a first attempt in hand it is there before it is over. */
  queued_at: Generated<Date | null>
  /** When a process took it for that attempt. Null: not known. */
  claimed_at: Generated<Date | null>
  created_at: Date
  completed_at: Date | null
}

/** One HTTP exchange each. */
export type AttemptsTable = {
  delivery_id: string
  number: number
  started_at: Date
  duration_ms: number
  response_status: number | null
  response_body: string | null
  error: string | null
  /** Whether its request was posted twice. */
  reposted: Generated<boolean>
}

/** What was asked to be sent again, and how far that is. At most one of a webhook is running. */
export type WebhookRecoveriesTable = {
  account_id: string
  id: string
  webhook_id: string
  status: Generated<'running' | 'completed' | 'canceled'>
  since: Date
  until: Date | null
  /** Null: all types that the webhook subscribes to. */
  types: string[] | null
  /** Deliveries to be sent that are known of. */
  found: number
  /** Whether there are no others. */
  found_all: boolean
  /** Deliveries made or made due. */
  done: Generated<number>
  /** A bigint: the position of the event it has come to. 0: it is from before there were positions. */
  at_position: Generated<string>
  at_id: Generated<string>
  /** A bigint: the last position it looks at. Null: it has not begun. */
  last_position: string | null
  /** The number of the task that carries it on. Each task puts the next one in the queue. */
  task: Generated<number>
  created_at: Date
  completed_at: Date | null
}
