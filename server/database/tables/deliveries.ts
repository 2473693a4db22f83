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
  next_attempt_at: Date | null
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
}
