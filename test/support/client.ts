import type { AppRoute, ClientInferRequest, ClientInferResponses } from '@ts-rest/core'
import { type Dispatcher, Pool } from 'undici'
import { inject } from 'vitest'
import { checkAnswer, type Exchange } from './answer-check.ts'
import { type ExercisedLog, openExercisedLog } from './exercised.ts'

export type Answer = {
  status: number
  /** Names in lower case; several of one name are joined. */
  headers: Readonly<Record<string, string>>
  text: string
  /** Parsed, when it is JSON; else undefined. */
  body: unknown
}

export type SendOptions = {
  /** Default: the key of the client. Null: none. */
  key?: string | null
  headers?: Record<string, string>
  idempotencyKey?: string
  /** Sent as JSON. */
  json?: unknown
  /** Sent as it is, with the content type of `headers`. */
  raw?: string | Buffer
}

type Extra = Omit<SendOptions, 'json' | 'raw'>
type Responses<R extends AppRoute> = ClientInferResponses<R>
type Success<R extends AppRoute> = Extract<Responses<R>, { status: 200 | 201 | 202 | 204 }>['body']

/**
 * Calls a live service and judges every answer by the published spec: an answer that breaks it is
 * thrown as an error, and what was seen is written down for the whole run.
 */
export type TestClient = AsyncDisposable & {
  /** Any request. `path` is sent as it is. */
  send(method: string, path: string, options?: SendOptions): Promise<Answer>
  /** Calls a route of the contract. */
  call<R extends AppRoute>(route: R, input: ClientInferRequest<R>, extra?: Extra): Promise<Responses<R>>
  /** As `call`, but answers the body alone, and throws when the answer is not a success. */
  succeed<R extends AppRoute>(route: R, input: ClientInferRequest<R>, extra?: Extra): Promise<Success<R>>
  /** The same service with another key. */
  as(key: string | null): TestClient
  close(): Promise<void>
}

export type TestClientOptions = {
  url: string
  /** Sent with every request that names no other. Null: none. */
  key: string | null
  /** Default: that of the run. */
  log?: ExercisedLog
}

export function createTestClient({ url, key, log }: TestClientOptions): TestClient {
  const pool = new Pool(url, { connections: 64 })
  return clientOn({ pool, key, log: log ?? openExercisedLog(inject('exercisedDirectory')) })
}

type ClientParts = { pool: Pool; key: string | null; log: ExercisedLog }

function clientOn(parts: ClientParts): TestClient {
  const { pool, log } = parts

  async function send(method: string, path: string, options: SendOptions = {}): Promise<Answer> {
    const { statusCode, headers, body } = await pool.request({
      method,
      path,
      headers: headersOf(options, parts.key),
      ...bodyOf(options),
    })
    const exchange = {
      method,
      path,
      status: statusCode,
      headers: flat(headers),
      body: await textOf(body, headers['content-type']),
    }
    judge(exchange, log)
    return { status: statusCode, headers: exchange.headers, text: exchange.body, body: parsed(exchange) }
  }

  async function call<R extends AppRoute>(route: R, input: ClientInferRequest<R>, extra: Extra = {}) {
    const { params = {}, query = {}, body } = partsOf(input)
    const answer = await send(route.method, pathOf(route.path, params) + queryOf(query), {
      ...extra,
      ...(body === undefined ? {} : { json: body }),
    })
    // The check against the spec has just shown it; the spec is made from the contract.
    return { ...answer, headers: new Headers(answer.headers) } as unknown as Responses<R>
  }

  return {
    send,
    call,
    async succeed(route, input, extra) {
      const { status, body } = await call(route, input, extra)
      if (status < 300) return body as Success<typeof route>
      throw new Error(`${route.method} ${route.path} answered ${status}: ${JSON.stringify(body)}`)
    },
    as: (key) => clientOn({ ...parts, key }),
    close: () => pool.close(),
    [Symbol.asyncDispose]: () => pool.close(),
  }
}

/** Writes down what was seen. Throws when the answer breaks the spec. */
function judge(exchange: Exchange, log: ExercisedLog): void {
  const { operation, faults } = checkAnswer(exchange)
  const { method, path, status, body } = exchange
  if (faults.length > 0) {
    throw new Error(
      `${method} ${path} answered ${status} in breach of the published spec:\n- ${faults.join('\n- ')}\n${body.slice(0, 2000)}`,
    )
  }
  if (operation !== null) log.add(operation.id, status)
}

function headersOf({ key, headers, idempotencyKey, json }: SendOptions, ownKey: string | null): Record<string, string> {
  const sentKey = key === undefined ? ownKey : key
  return {
    ...(sentKey === null ? {} : { authorization: `Bearer ${sentKey}` }),
    ...(json === undefined ? {} : { 'content-type': 'application/json' }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    ...headers,
  }
}

/** The whole body. Of a stream of events, which has no end, the first piece: then the client disconnects. */
async function textOf(body: Dispatcher.ResponseData['body'], type: unknown): Promise<string> {
  if (type !== 'text/event-stream') return body.text()
  for await (const piece of body) return String(piece)
  return ''
}

function bodyOf({ json, raw }: SendOptions): { body?: string | Buffer } {
  if (raw !== undefined) return { body: raw }
  return json === undefined ? {} : { body: JSON.stringify(json) }
}

function flat(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), [value].flat().join(', ')]),
  )
}

function parsed({ headers, body }: Exchange): unknown {
  return headers['content-type']?.startsWith('application/json') && body !== '' ? JSON.parse(body) : undefined
}

type Parts = { params?: Record<string, string>; query?: Record<string, unknown>; body?: unknown }

/** The parts of a request; which of them a route has, its own type says. */
function partsOf(input: object): Parts {
  return input
}

function pathOf(path: string, params: Record<string, string>): string {
  return path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
}

/** `?…`, or nothing. */
export function queryOf(query: Record<string, unknown>): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (typeof value === 'object' && value !== null) {
      for (const [inner, one] of Object.entries(value)) search.append(`${name}[${inner}]`, String(one))
    } else if (value !== undefined) search.append(name, String(value))
  }
  return search.size === 0 ? '' : `?${search}`
}
