import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { eventTypeName, eventTypeNames } from './event-types.ts'
import { boundedString, list, text, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { metadata, metadataFilter, shownMetadata } from './metadata.ts'
import { mode } from './mode.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

/** Webhooks that an account can have, of both modes together, unless the operator sets another limit. */
export const defaultMaxWebhooks = 1_000
/** Tests of webhooks that an account can have in flight in one process, of both modes together. */
export const maxConcurrentTests = 8

/** The characters of a URI with a host, and with neither user name nor fragment: RFC 3986 §3. */
const httpUri =
  /^[Hh][Tt][Tt][Pp][Ss]?:\/\/(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?(?:[/?](?:[A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)?$/

/** Returns the fault of `value` as the URL of a webhook, or null. Does not check where it leads. */
function faultOfWebhookUrl(value: string): string | null {
  if (!URL.canParse(value)) return 'must be an absolute URL, such as https://example.com/hooks'
  const url = new URL(value)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://'
  if (url.username !== '' || url.password !== '') return 'must not carry a user name or password'
  if (url.hash !== '') return 'must not carry a fragment (#…)'
  if (!httpUri.test(value)) return 'must be written as a URI: other characters percent-encoded, the host name in ASCII'
  return null
}

const webhookUrl = boundedString(2048)
  .min(1)
  .superRefine((value, context) => {
    const fault = faultOfWebhookUrl(value)
    // The published pattern takes some that are no URL, such as one with port 99999.
    if (fault !== null) context.addIssue({ code: 'custom', message: fault, params: { isRule: httpUri.test(value) } })
  })
  .meta({
    format: 'uri',
    pattern: httpUri.source,
    description:
      'Receives the deliveries by POST. `https`, or `http` where the operator allows it; it must lead to a public address unless the operator allows private networks. At most 2,048 characters; no user name, password or fragment; characters beyond ASCII percent-encoded, or, in the host, as `xn--…`.',
    example: 'https://example.com/hooks',
  })

const subscribedTypes = list(eventTypeName, {
  min: 1,
  minFault: 'at least one event type is needed',
  max: eventTypeNames.length,
  fault: `must be at most ${eventTypeNames.length} event types: each may stand only once`,
})
  .refine((types) => new Set(types).size === types.length, 'each event type may stand only once')
  .meta({
    uniqueItems: true,
    description: 'The event types to receive.',
    example: ['contact.created', 'contact.updated'],
  })

const description = text(500).meta({ description: 'A label for people.', example: 'Sync to the CRM' })

const status = z.enum(['enabled', 'disabled']).meta({
  description:
    'A disabled webhook receives nothing: disabling cancels what is pending, events that come meanwhile are not sent to it, and enabling sends neither. `POST /v1/webhooks/{id}/recover` sends both.',
})

const webhookFields = {
  id: idSchema('webhook', 'Identifies the webhook.'),
  mode,
  url: z.string().meta({ format: 'uri', description: 'Where deliveries go.', example: 'https://example.com/hooks' }),
  events: z.array(eventTypeName).meta({ description: 'The event types it receives.' }),
  description: z.string().nullable().meta({ description: 'A label for people.' }),
  metadata: shownMetadata,
  status,
  disabledReason: z.enum(['manual', 'gone', 'failing']).nullable().meta({
    description:
      'Why it is disabled: `manual` (by a request), `gone` (the endpoint answered 410), `failing` (at least 10 failed attempts in five days or more, and no success).',
  }),
  createdAt: timestamp,
  updatedAt: timestamp,
}

const webhookExample = {
  id: exampleId('webhook'),
  mode: 'live',
  url: 'https://example.com/hooks',
  events: ['contact.created', 'contact.updated'],
  description: 'Sync to the CRM',
  metadata: { customer: '42' },
  status: 'enabled',
  disabledReason: null,
  createdAt: '2026-03-01T09:30:00.000Z',
  updatedAt: '2026-03-01T09:30:00.000Z',
}

/** Deliveries that are looked at to count those that are pending. */
export const countedPending = 1_000

const webhookHealth = z
  .object({
    limit: z.int().min(1).nullable().meta({
      description:
        'Requests that may be in flight to its URL at once at present, of all processes together; each finds its own limit by how the endpoint answers. Null when none has had anything to do for the URL in the last minute.',
    }),
    inFlight: z.int().min(0).meta({
      description:
        'Requests in flight to its URL, of all processes, as of some seconds ago. Webhooks of the account with the same URL share `limit` and `inFlight`.',
    }),
    pending: z
      .int()
      .min(0)
      .max(countedPending)
      .meta({
        description: `Its deliveries that are pending, of the latest ${countedPending.toLocaleString('en')} that did not succeed.`,
      }),
    oldestPendingAt: timestamp.nullable().meta({ description: 'When the oldest of those was made; null without any.' }),
    lastHour: z
      .object({
        attempts: z.int().min(0).meta({ description: 'Attempts that ended. Those of `POST …/test` are left out.' }),
        successRate: z.number().min(0).max(1).nullable().meta({
          description: 'The share of attempts that the endpoint answered 2xx, from 0 to 1; null without attempts.',
        }),
        meanDurationMs: z.int().min(0).nullable().meta({
          description: 'Milliseconds from the start of an attempt to its answer or failure, on average.',
        }),
        maxDurationMs: z.int().min(0).nullable().meta({ description: 'The same of the slowest attempt.' }),
      })
      .meta({
        description:
          'The results of its attempts in the last hour, and up to five minutes before. Each process reports them every 5 seconds, of up to 10,000 webhooks. Those since the last report of a process that was killed are lost.',
      }),
  })
  .meta({
    id: 'WebhookHealth',
    description: 'How the deliveries of a webhook are doing.',
    example: {
      limit: 16,
      inFlight: 2,
      pending: 3,
      oldestPendingAt: '2026-03-01T09:30:00.010Z',
      lastHour: { attempts: 400, successRate: 0.995, meanDurationMs: 84, maxDurationMs: 1210 },
    },
  })

export const webhook = z
  .object({
    ...webhookFields,
    health: webhookHealth.optional().meta({
      description: 'How its deliveries are doing. Present in the answer of `GET /v1/webhooks/{id}` only.',
    }),
  })
  .meta({ id: 'Webhook', description: 'A URL that receives events.', example: webhookExample })

export const webhookWithSecret = z
  .object({
    ...webhookFields,
    secret: z
      .string()
      .regex(/^whsec_[A-Za-z0-9+/]{43}=$/)
      .meta({ description: 'Signs the deliveries. Shown here and never again: keep it.' }),
  })
  .meta({
    id: 'WebhookWithSecret',
    description: 'A webhook with its signing secret, as answered when the secret is made.',
    example: { ...webhookExample, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwbhHTVPCGfGM=' },
  })

const createWebhook = z
  .strictObject({
    url: webhookUrl,
    events: subscribedTypes,
    description: description.nullable().optional(),
    metadata: metadata.optional(),
  })
  .meta({
    id: 'CreateWebhook',
    description: 'Where to push which events.',
    example: { url: 'https://example.com/hooks', events: ['contact.created'], description: 'Sync to the CRM' },
  })

const updateWebhook = z
  .strictObject({
    url: webhookUrl.optional(),
    events: subscribedTypes.optional(),
    description: description.nullable().optional(),
    metadata: metadata.optional().meta({ description: 'Replaces all pairs there are.' }),
    status: status.optional(),
  })
  .meta({ id: 'UpdateWebhook', description: 'The fields to change.', example: { events: ['contact.deleted'] } })

const testWebhook = z
  .strictObject({ type: eventTypeName.optional().meta({ description: 'Default: the first subscribed type.' }) })
  .optional()
  .meta({ id: 'TestWebhook', description: 'Which sample to send.', example: { type: 'contact.created' } })

export const webhookTestResult = z
  .object({
    success: z.boolean().meta({ description: 'Whether the endpoint answered 2xx within 30 seconds.' }),
    responseTime: z.number().optional().meta({ description: 'Milliseconds until the answer; present on success.' }),
    error: z.string().optional().meta({ description: 'What went wrong and what to do; present on failure.' }),
  })
  .meta({
    id: 'WebhookTestResult',
    description: 'How the endpoint took a test event.',
    example: { success: true, responseTime: 84 },
  })

const listQuery = z.strictObject({ ...pageQuery, metadata: metadataFilter })

const idParam = z.object({ id: idSchema('webhook', 'The webhook.') })

export type Webhook = z.infer<typeof webhook>
export type WebhookHealth = z.infer<typeof webhookHealth>
export type WebhookWithSecret = z.infer<typeof webhookWithSecret>
export type WebhookListQuery = z.infer<typeof listQuery>
export type CreateWebhook = z.infer<typeof createWebhook>
export type UpdateWebhook = z.infer<typeof updateWebhook>
export type WebhookTestResult = z.infer<typeof webhookTestResult>

export const webhooks = c.router({
  create: {
    method: 'POST',
    path: '/v1/webhooks',
    summary: 'Create a webhook',
    description: `Registers a URL for event types. The answer carries the signing secret, which is shown only now. The webhook has the mode of the key, and gets the events of that mode, and those of subscribers, contacts and domains of both. An account can have ${defaultMaxWebhooks.toLocaleString('en')} webhooks, test and live together, unless the operator sets another limit; one more is refused with 409 \`conflict\`.`,
    body: createWebhook,
    ...outcome(
      {
        operationId: 'createWebhook',
        tag: 'Webhooks',
        permission: 'webhooks:write',
        inPortal: true,
        hasBody: true,
        idempotency: 'with-work',
        errors: ['conflict', 'rule_violation'],
      },
      { 201: webhookWithSecret },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/webhooks',
    summary: 'List webhooks',
    description: 'Newest first, those of the mode of the key.',
    query: listQuery,
    ...outcome(
      {
        operationId: 'listWebhooks',
        tag: 'Webhooks',
        permission: 'webhooks:read',
        inPortal: true,
        errors: ['rule_violation'],
      },
      { 200: pageOf(webhook, 'WebhookPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/webhooks/:id',
    summary: 'Get a webhook',
    description: 'One webhook, without its secret, and how its deliveries are doing.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'getWebhook',
        tag: 'Webhooks',
        permission: 'webhooks:read',
        inPortal: true,
        errors: ['not_found'],
      },
      { 200: webhook },
    ),
  },
  update: {
    method: 'PATCH',
    path: '/v1/webhooks/:id',
    summary: 'Update a webhook',
    description:
      'Changes the fields given. A changed URL applies from the next attempt of every delivery; disabling cancels the pending ones.',
    pathParams: idParam,
    body: updateWebhook,
    ...outcome(
      {
        operationId: 'updateWebhook',
        tag: 'Webhooks',
        permission: 'webhooks:write',
        inPortal: true,
        hasBody: true,
        errors: ['not_found', 'rule_violation'],
      },
      { 200: webhook },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/webhooks/:id',
    summary: 'Delete a webhook',
    description: 'Nothing is sent to it any more; pending deliveries are canceled and its log goes with it.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'deleteWebhook',
        tag: 'Webhooks',
        permission: 'webhooks:write',
        inPortal: true,
        errors: ['not_found'],
      },
      { 204: c.noBody() },
    ),
  },
  test: {
    method: 'POST',
    path: '/v1/webhooks/:id/test',
    summary: 'Send a test event',
    description: `Sends a sample of the first subscribed type (or of \`type\`) at once, signed like any other, tried once, and answers how the endpoint took it. The attempt carries the header \`X-Service-Sample: true\`. The delivery stands in the log of the webhook with \`sample: true\`; it can be resent, and recoveries leave it out. A sample that succeeds ends a run of failures; one that fails does not count as one. An account can have ${maxConcurrentTests} tests in flight in each process of the service, test and live together; one more is refused with 429 \`rate_limit_exceeded\`, and nothing is sent.`,
    pathParams: idParam,
    body: testWebhook,
    ...outcome(
      {
        operationId: 'testWebhook',
        tag: 'Webhooks',
        permission: 'webhooks:write',
        inPortal: true,
        hasBody: true,
        idempotency: 'after-work',
        errors: ['not_found', 'rule_violation'],
      },
      { 200: webhookTestResult },
    ),
  },
  rotateSecret: {
    method: 'POST',
    path: '/v1/webhooks/:id/rotate-secret',
    summary: 'Rotate the signing secret',
    description:
      'Makes a new secret and answers it once. `X-Service-Signature` uses it from the next attempt; `webhook-signature` is also signed with every secret of the last 24 hours, the latest four beside the new one.',
    pathParams: idParam,
    body: z.strictObject({}).optional(),
    ...outcome(
      {
        operationId: 'rotateWebhookSecret',
        tag: 'Webhooks',
        permission: 'webhooks:write',
        inPortal: true,
        hasBody: true,
        idempotency: 'with-work',
        errors: ['not_found'],
      },
      { 200: webhookWithSecret },
    ),
  },
})
