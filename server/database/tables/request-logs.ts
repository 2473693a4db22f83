import type { ErrorCode } from '../../../contract/errors.ts'
import type { Mode } from '../../../contract/mode.ts'

/** Requests to the API. Rows never change. */
export type RequestLogsTable = {
  account_id: string
  mode: Mode
  /** The id of the request, which holds its time. */
  id: string
  key_id: string
  /** The name at that time. */
  key_name: string
  method: string
  /** The path of the operation as the published spec has it. */
  route: string
  path: string
  /** 0: the client disconnected before it had the whole answer. */
  status: number
  duration_ms: number
  error_code: ErrorCode | null
  ip_address: string | null
  /** The kept part of the body of a failed request, as JSON. */
  request_body: string | null
  /** The kept part of the details of the error, as JSON. */
  error_details: string | null
}

/** Bytes that were written to `request_logs` on a day. */
export type RequestLogDaysTable = {
  account_id: string
  mode: Mode
  /** In UTC. */
  day: Date
  bytes: string
}
