import type { Mode } from '../../contract/mode.ts'
import type { DomainError } from '../shared/errors.ts'
import type { LogRow } from './queries.ts'
import { reduceBody, reduceDetails, reducePath } from './reduce.ts'

/** A request of a key that was answered. */
export type AnsweredByKey = {
  id: string
  accountId: string
  mode: Mode
  keyId: string
  keyName: string
  operationId: string
  method: string
  /** The path of the operation, with its parameters in braces. */
  route: string
  /** The path with its query, as it was sent. */
  url: string
  /** Null: the client disconnected before it had the whole answer. */
  status: number | null
  durationMs: number
  /** Null: it is not known. */
  ipAddress: string | null
  /** Why it was refused. Undefined: it succeeded. */
  refusal: DomainError | undefined
  /** The parsed body. Undefined: it had none, or it was not read. */
  body: unknown
}

/** The stored status of a request whose client has disconnected. */
export const abortedStatus = 0

/** Returns the row of a request, without secrets and the contents of emails. */
export function rowOf(request: AnsweredByKey): LogRow {
  const { refusal, status, route } = request
  return {
    account_id: request.accountId,
    mode: request.mode,
    id: request.id,
    key_id: request.keyId,
    key_name: request.keyName,
    method: request.method,
    route,
    path: reducePath(route, request.url),
    status: status ?? abortedStatus,
    duration_ms: Math.round(request.durationMs * 10) / 10,
    error_code: refusal?.code ?? null,
    ip_address: request.ipAddress,
    request_body: refusal === undefined ? null : reduceBody(request.operationId, request.body),
    error_details: refusal === undefined ? null : reduceDetails(refusal),
  }
}

/** Bytes of a row in the table and its indexes, without the texts below. */
const fixedBytes = 1_000

/** Returns the bytes that a row takes on the disk at most, with its indexes. */
export function bytesOf({ key_name, path, request_body: body, error_details: details }: LogRow): number {
  const texts = [key_name, path, body ?? '', details ?? '']
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), fixedBytes)
}
