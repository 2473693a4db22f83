import type { ParameterObject, SecuritySchemeObject } from 'openapi3-ts/oas31'
import { exampleId, idPattern } from '../contract/ids.ts'

/** The name of the security scheme of operations that take a key. */
export const bearer = 'bearer'

export const securityScheme: SecuritySchemeObject = {
  type: 'http',
  scheme: 'bearer',
  description:
    'An API key, `postern_test_…` or `postern_live_…`. The names in the security of an operation are the permissions its key needs.',
}

/** The name of the security scheme of operations that need a session of the dashboard. */
export const session = 'session'

export const sessionScheme: SecuritySchemeObject = {
  type: 'apiKey',
  in: 'cookie',
  name: 'postern_session',
  description:
    'A session of the dashboard. Over TLS the cookie is called `__Host-postern_session`. It is never read beside an `Authorization` header.',
}

/** The name of the security scheme of operations that need a session of the portal. */
export const portal = 'portal'

export const portalScheme: SecuritySchemeObject = {
  type: 'http',
  scheme: 'bearer',
  description:
    'The token of a portal session, `postern_portal_…`, or its cookie, `postern_portal_` and the id of the session without its prefix (over TLS `__Host-postern_portal_…`), beside `X-Postern-Dashboard: 1` and `X-Postern-Portal`, the id of the session. It is taken by the operations that are part of the portal, and shows the webhooks of one customer.',
}

/** Headers of requests of the dashboard, by the names of their components. */
export const dashboardHeaders = {
  Dashboard: {
    name: 'X-Postern-Dashboard',
    in: 'header',
    required: true,
    description:
      'Shows that a page of this service sent the request: a form or a page of another origin cannot add it. Requests that change something must also have the `Origin` of the service.',
    schema: { type: 'string', enum: ['1'] },
  },
  Account: {
    name: 'X-Postern-Account',
    in: 'header',
    required: true,
    description: 'The account that the request is about. The user must be a member of it.',
    schema: { type: 'string', examples: [exampleId('account')] },
  },
} as const satisfies Record<string, ParameterObject>

export const dashboardRef = { $ref: '#/components/parameters/Dashboard' }
export const accountRef = { $ref: '#/components/parameters/Account' }

export const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Makes the request safe to send again: for 24 hours the same key with the same request is answered as the first time, with `Idempotent-Replayed: true`, and with another request is refused. 1 to 255 printable ASCII characters, such as a UUID.',
  schema: {
    type: 'string',
    minLength: 1,
    maxLength: 255,
    // Space at either end would be lost on the way (RFC 9110 §5.5).
    pattern: '^[!-~]([ -~]*[!-~])?$',
    examples: ['8f14e45f-ceea-467f-a9d2-3c1a5d6b7e80'],
  },
} as const satisfies ParameterObject

export const idempotencyKeyRef = { $ref: '#/components/parameters/IdempotencyKey' }

/** Where a stream of server-sent events goes on. */
export const lastEventId: ParameterObject = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'The last `id` that the client got: the stream goes on after it.',
  schema: { type: 'string', pattern: `^(0|${idPattern('event').source.slice(1, -1)})$` },
}

/**
 * The headers of every delivery. They stand in each webhook and not among the components, because
 * oapi-codegen (2.8) leaves out a component that only webhooks use.
 */
export const deliveryHeaders: ParameterObject[] = [
  {
    name: 'X-Service-Signature',
    in: 'header',
    required: true,
    description:
      'The lowercase hexadecimal HMAC-SHA-256 of the raw body, keyed with the `secret` of the webhook, prefix included. Compare it in constant time before parsing the body.',
    schema: { type: 'string', pattern: '^[0-9a-f]{64}$' },
  },
  {
    name: 'webhook-id',
    in: 'header',
    required: true,
    description: 'The id of the event; the same on every attempt, for deduplication (Standard Webhooks).',
    schema: { type: 'string' },
  },
  {
    name: 'webhook-timestamp',
    in: 'header',
    required: true,
    description: 'When this attempt was signed: Unix time in seconds. Refuse old ones to refuse replays.',
    schema: { type: 'string', pattern: '^[0-9]+$' },
  },
  {
    name: 'webhook-signature',
    in: 'header',
    required: true,
    description:
      '`v1,` and the base64 of the HMAC-SHA-256 of `{webhook-id}.{webhook-timestamp}.{body}`, keyed with the bytes the `secret` encodes after `whsec_` (Standard Webhooks). A secret signs for 24 hours after it was rotated, beside the new one: there are up to five signatures, of the present secret and of the latest four rotated, separated by spaces. Accept any.',
    schema: { type: 'string', pattern: '^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$' },
  },
  {
    name: 'X-Service-Mode',
    in: 'header',
    required: true,
    description:
      'The mode of the event, `test` or `live`: a webhook of one mode also gets the events of subscribers, contacts and domains that the other has caused. Not signed.',
    schema: { type: 'string', enum: ['test', 'live'] },
  },
  {
    name: 'X-Service-Sample',
    in: 'header',
    required: false,
    description:
      '`true` where the event is a sample made up by `POST /v1/webhooks/:id/test`; else the header is not there. Verify the signature and answer 2xx, but do not act on it. Not signed.',
    schema: { type: 'string', enum: ['true'] },
  },
  {
    name: 'traceparent',
    in: 'header',
    required: false,
    description:
      'Where the event is traced: the attempt, for the receiver to go on with the trace (W3C Trace Context). Not signed.',
    schema: { type: 'string', pattern: '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' },
  },
]
