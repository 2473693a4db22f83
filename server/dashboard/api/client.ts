import type { z } from 'zod'
import type { ErrorBody } from '../../../contract/errors.ts'
import type { contract } from '../../../contract/index.ts'
import type { Mode } from '../../../contract/mode.ts'
import { isAttended } from './attendance.ts'

/*
 * A client typed by the contract. Only its types are imported, so that neither the contract nor zod is in what the
 * browser loads.
 */

type Contract = typeof contract
type Group = { [G in keyof Contract]: Contract[G][keyof Contract[G]] }[keyof Contract]
type Route = Extract<Group, { method: string; path: string }>
type KeyOf<R> = R extends { method: infer M extends string; path: infer P extends string } ? `${M} ${P}` : never

/** Every operation of the API, such as `GET /v1/emails/:id`. */
export type Operation = KeyOf<Route>

type Find<R, K> = R extends unknown ? (K extends KeyOf<R> ? R : never) : never
type RouteOf<K extends Operation> = Find<Route, K>
type SuccessOf<R> = R extends { responses: infer S } ? S[keyof S & (200 | 201 | 202)] : never

/** The result of an operation. Undefined: it returns nothing. */
export type Result<K extends Operation> =
  SuccessOf<RouteOf<K>> extends z.ZodType ? z.output<SuccessOf<RouteOf<K>>> : undefined

type ParamsIn<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | ParamsIn<Rest>
  : P extends `${string}:${infer Name}`
    ? Name
    : never

type BodyOf<K extends Operation> = RouteOf<K> extends { body: infer B extends z.ZodType } ? z.input<B> : never
type QueryOf<K extends Operation> = RouteOf<K> extends { query: infer Q extends z.ZodType } ? z.input<Q> : never

type Given<Name extends string, T> = [T] extends [never]
  ? { [N in Name]?: never }
  : undefined extends T
    ? { [N in Name]?: T }
    : { [N in Name]: T }
type ParamsOf<K extends Operation> = [ParamsIn<K>] extends [never]
  ? { params?: never }
  : { params: Readonly<Record<ParamsIn<K>, string>> }

/** The input of an operation: parameters of the path, body and query. */
export type Input<K extends Operation> = ParamsOf<K> &
  Given<'body', BodyOf<K>> & { query?: [QueryOf<K>] extends [never] ? never : Partial<QueryOf<K>> }

/** The account and the mode that a session works on. */
export type Scope = { accountId: string; mode: Mode }

/** The API refused a request, or could not be reached. */
export class ApiError extends Error {
  /** 0: it could not be reached. */
  readonly status: number
  readonly code: ErrorBody['error']['code'] | 'unreachable'
  readonly details: readonly { path: string; message: string }[]
  readonly requestId: string | null

  constructor({ status, code, message, details = [], requestId = null }: Fault, options?: ErrorOptions) {
    super(message, options)
    this.status = status
    this.code = code
    this.details = details
    this.requestId = requestId
  }
}

type Fault = Pick<ApiError, 'status' | 'code' | 'message'> & {
  details?: ErrorBody['error']['details']
  requestId?: string | null
}

export type Call = <K extends Operation>(operation: K, input: Input<K>) => Promise<Result<K>>

/**
 * Returns a function that calls the API in `scope`, with the cookie of the session. Null: outside of an account.
 * It throws an ApiError when the API refuses the request or cannot be reached.
 */
export function createClient(scope: Scope | null): Call {
  return clientWith(() => headersOf(scope))
}

/**
 * Returns a function that calls the API with a session of the portal. It throws as that of `createClient` does.
 *
 * @param token The token of the session. Null: its cookie is there.
 */
export function createPortalClient({ id, token }: { id: string; token: string | null }): Call {
  const authorization = token === null ? {} : { Authorization: `Bearer ${token}` }
  return clientWith(() => ({ ...headersOf(null), 'X-Postern-Portal': id, ...authorization }))
}

function clientWith(currentHeaders: () => Record<string, string>): Call {
  return async (operation, input) => {
    const [method = '', path = ''] = operation.split(' ')
    const { params, query, body } = input as LooseInput
    const headers = currentHeaders()
    const response = await send(urlOf(path, params, query), {
      method,
      headers: body === undefined ? headers : { ...headers, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!response.ok) throw await errorOf(response)
    const text = await response.text()
    return text === '' ? undefined : JSON.parse(text)
  }
}

/** Returns the headers of a request in `scope` that is sent now. */
export function headersOf(scope: Scope | null): Record<string, string> {
  const own = { 'X-Postern-Dashboard': '1', ...(isAttended() ? {} : { 'X-Postern-Unattended': '1' }) }
  return scope === null ? own : { ...own, 'X-Postern-Account': scope.accountId, 'X-Postern-Mode': scope.mode }
}

type LooseInput = { params?: Record<string, string>; query?: Record<string, unknown>; body?: unknown }

/** Sends a request. Throws an ApiError when the API cannot be reached. */
export async function send(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init)
  } catch (cause) {
    throw unreachable(
      'The service cannot be reached. Check that it runs and that you are online, then try again.',
      cause,
    )
  }
}

/** Returns the error of a request without a response, or whose response broke off. */
export function unreachable(message: string, cause: unknown): ApiError {
  return new ApiError({ status: 0, code: 'unreachable', message }, { cause })
}

function urlOf(path: string, params: Record<string, string> = {}, query: Record<string, unknown> = {}): string {
  const filled = path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
  const given = Object.entries(query).flatMap(partsOf)
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
  return search === '' ? filled : `${filled}?${search}`
}

/** Returns a parameter, or those of an object: `metadata[customer]`. None for one that is not given. */
function partsOf([name, value]: [string, unknown]): [string, unknown][] {
  if (value === undefined || value === '') return []
  if (typeof value !== 'object' || value === null) return [[name, value]]
  return Object.entries(value).map(([key, part]) => [`${name}[${key}]`, part])
}

/** Returns the error of a response that is no success. */
export async function errorOf(response: Response): Promise<ApiError> {
  const { status } = response
  try {
    const { error }: ErrorBody = await response.json()
    return new ApiError({ ...error, status })
  } catch {
    const message = `The service answered ${status} with something that is not JSON. Try again; if it stays, look at its log.`
    return new ApiError({ status, code: 'internal_error', message })
  }
}
