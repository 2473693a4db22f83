import type { Deprecation } from './deprecations.ts'
import { type ErrorCode, errorBody, errorTable } from './errors.ts'
import type { Permission } from './permissions.ts'

/** The metadata of a route, for the server and the published spec, in addition to its schemas. */
export type RouteMetadata = {
  /** The name of the operation in generated clients. */
  operationId: string
  /** The heading it stands under in the documentation. */
  tag: Tag
  /**
   * Who may call it. `key`: an API key. `any`: an API key, or a session of the dashboard. `session`: a session.
   * `operator`: a session of an operator of the service. `portal`: a session of the portal. `none`: every client.
   */
  caller: 'key' | 'any' | 'session' | 'operator' | 'portal' | 'none'
  /** Whether sessions of the portal may call it too. Its use case then keeps to the customer of its scope. */
  inPortal: boolean
  /** The permission that the caller needs in the account. Null: the route is about no account. */
  permission: Permission | null
  /** Whether a test key is refused. */
  liveKeyOnly: boolean
  /**
   * Whether `Idempotency-Key` is accepted, and how the answer is kept: with the work, in its
   * transaction, or after it, where the work is more than a transaction (an HTTP request to another service, new
   * keys).
   */
  idempotency: 'none' | 'with-work' | 'after-work'
  /**
   * Who gets the kept answer again. `caller`: only the key or user that sent the first request, where the answer holds
   * a secret that another one must not get by repeating the request.
   */
  keptFor: 'account' | 'caller'
  /** Whether the body may hold files, so that it may be larger than those of other routes. */
  takesAttachments: boolean
  /** The types of the file that is its body, which the use case reads as it arrives. Null: its body is JSON or nothing. */
  takesFile: readonly string[] | null
  /** Fields whose strings may be longer than 65,535 characters, as no other's may, and how long. Characters. */
  longFields: Readonly<Record<string, number>>
  /** Every error it can answer. */
  errors: readonly ErrorCode[]
  /** The deprecations of the operation and its parameters. */
  deprecations: readonly Deprecation[]
}

export const tags = {
  Session: 'Signing in to the dashboard, and what belongs to the user who is signed in.',
  Members: 'The users of an account, and their roles.',
  Webhooks: 'URLs that receive events.',
  Deliveries: 'Events on their way to webhooks, with every attempt.',
  Portal: 'Your customers, in a frame of your site, at their own webhooks.',
  Events: 'Facts, immutable: what happened, as it was pushed to webhooks.',
  Subscribers: 'People, once per account and address.',
  Audiences: 'Named lists of people.',
  Contacts: 'The membership of a subscriber in an audience.',
  'Contact properties': 'What an account keeps of people beside their address and name.',
  Segments: 'People of an audience, chosen by conditions.',
  Topics: 'What people may subscribe to or leave.',
  Imports: 'Contacts from a CSV file, or from a ZIP with such files.',
  Domains: 'Names to send from, with the DNS records they need.',
  Templates: 'Content that is written once and rendered for each message.',
  Emails: 'Messages, to one or more recipients each.',
  Campaigns: 'One message to a whole audience.',
  Suppressions: 'Addresses that are not written to.',
  'Captured messages': 'What was kept instead of being sent.',
  'Inbound messages': 'What came back and was not understood.',
  Statistics: 'Counts of what happened, by hour or day.',
  Account: 'The plan of an account, and what it uses.',
  'API keys': 'Keys of this API.',
  Operator: 'The whole service: its accounts, and how it is doing. For its operators.',
  'Audit log': 'Who changed what.',
  'Request logs': 'Requests to this API, and how they were answered.',
} as const

export type Tag = keyof typeof tags

/** Every route can answer these; one that needs neither key nor session names `authentication_error` itself. */
const errorsOfEveryRoute = [
  'validation_error',
  'authentication_error',
  'rate_limit_exceeded',
  'internal_error',
  'unavailable',
] as const satisfies readonly ErrorCode[]

const errorsOfEveryBody = [
  'malformed_json',
  'payload_too_large',
  'unsupported_media_type',
] as const satisfies readonly ErrorCode[]

type StatusOf<C extends ErrorCode> = (typeof errorTable)[C]['status']
type ErrorResponses<C extends ErrorCode> = { [S in StatusOf<C>]: typeof errorBody }
type Always = (typeof errorsOfEveryRoute)[number]
type WithBody = (typeof errorsOfEveryBody)[number]

type Options<E extends ErrorCode> = {
  operationId: string
  tag: Tag
  /** Default: `any`. */
  caller?: RouteMetadata['caller']
  /** Whether sessions of the portal may call it too. Default: no. */
  inPortal?: boolean
  permission: Permission | null
  liveKeyOnly?: boolean
  idempotency?: RouteMetadata['idempotency']
  /** Default: `account`. */
  keptFor?: RouteMetadata['keptFor']
  /** False for an answer that needs no database, so that it lacks the errors of one that is out of reach. Default: true. */
  readsDatabase?: boolean
  /** Whether a request body is read: adds the errors of a bad one. */
  hasBody?: boolean
  /** Whether the body may hold files. Default: no. */
  takesAttachments?: boolean
  /** The types of the file that is its body. Default: its body is no file. */
  takesFile?: RouteMetadata['takesFile']
  /** Fields whose strings may be longer than 65,535 characters, and how long. Default: none. */
  longFields?: Readonly<Record<string, number>>
  /** The errors beyond those every route has. */
  errors?: readonly E[]
  /** The deprecations of the operation and its parameters. Default: none. */
  deprecations?: readonly Deprecation[]
}

/**
 * The error answers and the metadata of a route, from one list of its error codes.
 *
 * @example
 * { method: 'GET', path: '/v1/things/:id', ...outcome({ operationId: 'getThing', …, errors: ['not_found'] }, { 200: thing }) }
 */
export function outcome<E extends ErrorCode, R extends Record<number, unknown>>(options: Options<E>, success: R) {
  const idempotency = options.idempotency ?? 'none'
  const caller = options.caller ?? 'any'
  const { readsDatabase = true } = options
  const isPossible = (code: ErrorCode) => readsDatabase || (code !== 'internal_error' && code !== 'unavailable')
  const errors: ErrorCode[] = [
    ...errorsOfEveryRoute.filter((code) => isPossible(code) && (caller !== 'none' || code !== 'authentication_error')),
    ...(caller !== 'key' && caller !== 'any' ? (['forbidden_origin'] as const) : []),
    ...(options.hasBody ? errorsOfEveryBody : []),
    ...(idempotency === 'none' ? [] : (['idempotency_conflict'] as const)),
    ...(options.errors ?? []),
  ]
  const failures = Object.fromEntries(errors.map((code) => [errorTable[code].status, errorBody]))
  const metadata: RouteMetadata = {
    operationId: options.operationId,
    tag: options.tag,
    caller,
    inPortal: options.inPortal ?? caller === 'portal',
    permission: options.permission,
    liveKeyOnly: options.liveKeyOnly ?? false,
    idempotency,
    keptFor: options.keptFor ?? 'account',
    takesAttachments: options.takesAttachments ?? false,
    takesFile: options.takesFile ?? null,
    longFields: options.longFields ?? {},
    errors,
    deprecations: options.deprecations ?? [],
  }
  return {
    responses: { ...failures, ...success } as ErrorResponses<
      Always | WithBody | 'forbidden_origin' | 'idempotency_conflict' | E
    > &
      R,
    metadata,
  }
}
