import type { HeaderObject, HeadersObject, ReferenceObject } from 'openapi3-ts/oas31'

/*
 * The headers of the answers. Those marked `required` are on every answer that names them.
 */

/** The headers, by their name on the wire, which is also the name of their component. */
export const headerComponents = {
  'X-Request-Id': {
    description: 'Identifies the request in the logs; also in the body of an error.',
    required: true,
    schema: { type: 'string' },
  },
  'X-RateLimit-Limit': {
    description: 'Requests allowed in the window, by the plan of the account.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
  },
  'X-RateLimit-Remaining': {
    description: 'Requests left in the window.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'X-RateLimit-Reset': {
    description: 'When the window resets: Unix time in seconds.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'Retry-After': {
    description: 'Seconds to wait before the next try.',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'WWW-Authenticate': {
    description: 'The scheme to authenticate with: `Bearer` (RFC 6750 §3).',
    required: true,
    schema: { type: 'string' },
  },
  'Idempotent-Replayed': {
    description:
      '`true` when the answer is that of an earlier request with the same `Idempotency-Key`; absent otherwise.',
    schema: { type: 'string', enum: ['true'] },
  },
  Deprecation: {
    description:
      'On answers to requests that use a deprecated parameter or operation: since when it is deprecated, `@` and Unix time in seconds (RFC 9745).',
    schema: { type: 'string', pattern: '^@[0-9]+$' },
  },
  Sunset: {
    description:
      'On answers to requests that use a deprecated parameter or operation: until when it works at least, as an HTTP date (RFC 8594).',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, HeaderObject>

type HeaderName = keyof typeof headerComponents

const rateLimit = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'] as const

/** A reference to the component of each. */
function refs(names: readonly HeaderName[]): Record<string, ReferenceObject> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}

/** The rate limit headers of an answer that can also come when the account or its limit is not known. */
function maybeRateLimit(): HeadersObject {
  return Object.fromEntries(rateLimit.map((name) => [name, { ...headerComponents[name], required: false }]))
}

/** The headers of an answer that is a success. */
export function successHeaders(options: { idempotent: boolean; hasDeprecated: boolean }): HeadersObject {
  return refs([
    'X-Request-Id',
    ...rateLimit,
    ...(options.idempotent ? (['Idempotent-Replayed'] as const) : []),
    ...(options.hasDeprecated ? (['Deprecation', 'Sunset'] as const) : []),
  ])
}

/** The headers of an answer that is an error of this status. */
export function errorHeaders(status: number): HeadersObject {
  // The key is known, and its account counted, when only the permission is lacking.
  // A session is known only when the request has shown to be of the dashboard.
  if (status === 403) return { ...refs(['X-Request-Id']), ...maybeRateLimit() }
  if (status === 401) return { ...refs(['X-Request-Id', 'WWW-Authenticate']), ...maybeRateLimit() }
  if (status === 429 || status === 503) return { ...refs(['X-Request-Id', 'Retry-After']), ...maybeRateLimit() }
  if (status === 500) return { ...refs(['X-Request-Id']), ...maybeRateLimit() }
  return refs(['X-Request-Id', ...rateLimit])
}
