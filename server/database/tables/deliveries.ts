import type { Generated } from 'kysely'

export type DeliveriesTable = {
  /** Contains the UUID that is the id of its job in the queue: a delivery has at most one job. */
  id: string
  account_id: string
  webhook_id: string
  event_id: string
  event_type: string
  status: Generated<'pending' | 'succeeded' | 'failed' | 'canceled'>
  attempt_count: Generated<number>
  /** Attempts made in the current run of the schedule. Sending again starts a new run. */
  schedule_position: Generated<number>
  /** Grows when a delivery that has ended is sent again. An attempt of an earlier run changes only the log. */
  run: Generated<number>
  next_attempt_at: Date | null
  /**
   * When the latest attempt was due. Null: not known. For a first attempt in hand it is set before the attempt is over.
   */
  queued_at: Generated<Date | null>
  /** When a process claimed the delivery for that attempt. Null: not known. */
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
  /** True when its request was sent twice. */
  reposted: Generated<boolean>
  /** The version of the webhook that it was made for, which tells its URL. Null: not known. */
  webhook_version: number | null
}

/** Recoveries and their progress. At most one recovery of a webhook is running. */
export type WebhookRecoveriesTable = {
  account_id: string
  id: string
  webhook_id: string
  status: Generated<'running' | 'completed' | 'canceled'>
  since: Date
  until: Date | null
  /** Null: all types that the webhook subscribes to. */
  types: string[] | null
  /** Number of deliveries to send that are known so far. */
  found: number
  /** True when `found` is final. */
  found_all: boolean
  /** Deliveries created or restarted so far. */
  done: Generated<number>
  /** A bigint: the position of the last event looked at. 0: an event from before positions existed. */
  at_position: Generated<string>
  at_id: Generated<string>
  /** A bigint: the last position to look at. Null: the recovery has not begun. */
  last_position: string | null
  /** The number of the task that continues the recovery. Each task queues the next one. */
  task: Generated<number>
  created_at: Date
  completed_at: Date | null
}
