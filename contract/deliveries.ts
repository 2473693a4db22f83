import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { formerSince } from './deprecations.ts'
import { eventTypeName, eventTypeNames } from './event-types.ts'
import { event } from './events.ts'
import { list, timeInput, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { mode } from './mode.ts'
import { pageOf, pageQuery, timeFilters } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

/** Number of URLs that are kept of a webhook for its attempts. A further change removes the oldest. */
export const keptWebhookUrls = 20

const deliveryStatus = z.enum(['pending', 'succeeded', 'failed', 'canceled']).meta({
  id: 'DeliveryStatus',
  description:
    '`pending`: an attempt is due or running. `succeeded`: the endpoint answered 2xx. `failed`: the last attempt failed. `canceled`: the webhook was disabled or deleted first.',
})

const deliveryFields = {
  id: idSchema('delivery', 'Identifies the delivery.'),
  eventId: idSchema('event', 'The event it carries.'),
  eventType: eventTypeName,
  mode,
  status: deliveryStatus,
  attemptCount: z.int().min(0).meta({ description: 'Attempts made so far.' }),
  sample: z.boolean().meta({
    description:
      'Whether it carries a sample, made up by `POST /v1/webhooks/:id/test`. Each attempt of one has the header `X-Service-Sample: true`.',
  }),
  nextAttemptAt: timestamp.nullable().meta({ description: 'When the next attempt is due; null when none is.' }),
  createdAt: timestamp,
  completedAt: timestamp.nullable().meta({ description: 'When it succeeded, failed or was canceled.' }),
}

const deliveryExample = {
  id: exampleId('delivery'),
  eventId: exampleId('event'),
  eventType: 'contact.created',
  mode: 'live',
  status: 'pending',
  attemptCount: 1,
  sample: false,
  nextAttemptAt: '2026-03-01T09:31:00.120Z',
  createdAt: '2026-03-01T09:30:00.010Z',
  completedAt: null,
}

export const delivery = z
  .object(deliveryFields)
  .meta({ id: 'Delivery', description: 'One event on its way to one webhook.', example: deliveryExample })

const attemptRequestExample = {
  url: 'https://example.com/hooks',
  headers: {
    'content-type': 'application/json; charset=utf-8',
    'user-agent': 'Postern-Webhooks/1',
    'webhook-id': exampleId('event'),
    'webhook-timestamp': '1772357400',
    'x-service-mode': 'live',
  },
}

const attemptExample = {
  number: 1,
  request: attemptRequestExample,
  startedAt: '2026-03-01T09:30:00.020Z',
  durationMs: 100,
  responseStatus: 500,
  responseBody: 'Internal Server Error',
  error: 'The endpoint answered 500.',
  reposted: false,
}

const attemptRequest = z
  .object({
    url: z
      .string()
      .nullable()
      .meta({
        description: `Where it was to be posted: the URL of the webhook at that time. Null where the URL has changed ${keptWebhookUrls} times since.`,
      }),
    headers: z.record(z.string(), z.string()).meta({
      description:
        'The headers that say what it carries. Those of the connection are left out, `traceparent`, and the signatures, which are made with the secrets of that moment.',
    }),
  })
  .meta({
    id: 'AttemptRequest',
    description: 'The request of an attempt. Its body is the event, as `GET …/event` returns it, without `mode`.',
    example: attemptRequestExample,
  })

const attempt = z
  .object({
    number: z.int().min(1).meta({ description: 'Counted from 1.' }),
    request: attemptRequest.nullable().meta({
      description: 'Null for attempts made by a version that did not keep it.',
    }),
    startedAt: timestamp,
    durationMs: z.int().min(0).meta({ description: 'Milliseconds from the start to the answer or the failure.' }),
    responseStatus: z.int().nullable().meta({
      description: 'The status the endpoint answered, also where its answer then broke off; null without one.',
    }),
    responseBody: z
      .string()
      .nullable()
      .meta({ description: 'The first 4 KiB of the answer as text; null without an answer.' }),
    error: z.string().nullable().meta({ description: 'Why the attempt failed; null when it succeeded.' }),
    reposted: z.boolean().meta({
      description:
        'Whether the request was posted twice within this attempt: the endpoint closed a kept connection while the request was on its way, so it was posted again on a new one. The endpoint may have received both.',
    }),
  })
  .meta({ id: 'Attempt', description: 'One HTTP exchange of a delivery.', example: attemptExample })

const waitingFor = z.enum(['retry_schedule', 'endpoint_limit', 'account_share', 'claim']).meta({
  id: 'WaitingFor',
  description:
    'What a pending delivery waits for. `retry_schedule`: its time has not come; see `nextAttemptAt`. `endpoint_limit`: its URL, or the host of the URL, has as many requests in flight as it takes at present. `account_share`: the account has as many requests in flight as its share is at present. `claim`: nothing known stands in its way, and its turn comes. As of the last 15 seconds.',
})

export const deliveryWithAttempts = z
  .object({
    ...deliveryFields,
    queuedAt: timestamp.nullable().meta({
      description:
        'When the next attempt was due, where that time has come, else the last attempt made: from then on it waited for its turn. Null where it is not known.',
    }),
    claimedAt: timestamp.nullable().meta({
      description:
        'When a process took it for the attempt that `queuedAt` is of. Null while it waits for that, and where it is not known.',
    }),
    waitingFor: waitingFor.nullable().meta({
      description: 'What it waits for; null when it is not pending, or when a process has taken it.',
    }),
    attempts: z.array(attempt),
  })
  .meta({
    id: 'DeliveryWithAttempts',
    description: 'A delivery with all its attempts, first to last.',
    example: {
      ...deliveryExample,
      queuedAt: '2026-03-01T09:30:00.010Z',
      claimedAt: '2026-03-01T09:30:00.010Z',
      waitingFor: 'retry_schedule',
      attempts: [attemptExample],
    },
  })

const recoveryStatus = z.enum(['running', 'completed', 'canceled']).meta({
  id: 'RecoveryStatus',
  description:
    '`running`: it sends in the background. `completed`: all that was to be sent is on its way. `canceled`: the webhook was disabled first. Enable it and start another recovery; what was sent already is not sent again.',
})

const recoveryFields = {
  id: idSchema('recovery', 'Identifies the recovery.'),
  status: recoveryStatus,
  since: timestamp.meta({ description: 'Events of this time or later.' }),
  until: timestamp.nullable().meta({ description: 'Events before this time; null without an end.' }),
  types: z
    .array(eventTypeName)
    .nullable()
    .meta({ description: 'Only events of these types; null: all that the webhook subscribes to.' }),
  count: z.int().min(0).meta({
    description:
      'How many deliveries it sends. Exact where `countIsExact` says so, which is when the span has up to 2,000 events, and at the end. Else a lower bound, which grows while it runs.',
  }),
  countIsExact: z.boolean().meta({ description: 'Whether `count` is all there is to send, and not a lower bound.' }),
  done: z.int().min(0).meta({ description: 'How many of them were put on their way so far.' }),
  createdAt: timestamp,
  completedAt: timestamp.nullable().meta({ description: 'When it was completed or canceled; null while it runs.' }),
}

const recoveryExample = {
  id: exampleId('recovery'),
  status: 'running',
  since: '2026-03-01T00:00:00.000Z',
  until: null,
  types: null,
  count: 42,
  countIsExact: true,
  done: 0,
  createdAt: '2026-03-02T09:30:00.000Z',
  completedAt: null,
}

const recovery = z
  .object(recoveryFields)
  .meta({ id: 'Recovery', description: 'What was asked to be sent, and how far it is.', example: recoveryExample })

const startedRecovery = z
  .object({
    ...recoveryFields,
    started: z.boolean().meta({
      description:
        'Whether this request started it. False: the same recovery was running already, and nothing is sent twice.',
    }),
  })
  .meta({
    id: 'StartedRecovery',
    description: 'The recovery that was started, or the same one that was running already.',
    example: { ...recoveryExample, started: true },
  })

const recoverRequest = z
  .strictObject({
    since: timeInput.meta({ description: 'Events of this time or later, by the time in the event.' }),
    until: timeInput.optional().meta({ description: 'Only events before this time. Default: all until now.' }),
    types: list(eventTypeName, {
      min: 1,
      minFault: 'at least one event type is needed',
      max: eventTypeNames.length,
      fault: `must be at most ${eventTypeNames.length} event types: each may stand only once`,
    })
      .refine((types) => new Set(types).size === types.length, 'each event type may stand only once')
      .optional()
      .meta({
        uniqueItems: true,
        description: 'Only events of these types. Default: all that the webhook subscribes to.',
        example: ['contact.created'],
      }),
  })
  .meta({
    id: 'RecoverDeliveries',
    description: 'Which events to send.',
    example: { since: '2026-03-01T00:00:00Z' },
  })

const webhookParam = z.object({ id: idSchema('webhook', 'The webhook.') })
const deliveryParams = z.object({
  id: idSchema('webhook', 'The webhook.'),
  deliveryId: idSchema('delivery', 'The delivery.'),
})

const listQuery = z.strictObject({
  ...pageQuery,
  status: deliveryStatus.optional(),
  eventType: eventTypeName.optional(),
  ...timeFilters,
  from: timeInput.optional().meta({ description: 'The former name of `since`.' }),
})

export type Recovery = z.infer<typeof recovery>
export type StartedRecovery = z.infer<typeof startedRecovery>
export type RecoverRequest = z.infer<typeof recoverRequest>
export type Delivery = z.infer<typeof delivery>
export type DeliveryWithAttempts = z.infer<typeof deliveryWithAttempts>
export type DeliveryListQuery = Omit<z.infer<typeof listQuery>, 'from'>

export const deliveries = c.router({
  list: {
    method: 'GET',
    path: '/v1/webhooks/:id/deliveries',
    summary: 'List the deliveries of a webhook',
    description:
      'Newest first, test deliveries included. With a filter a page can have fewer deliveries than `limit`, even none, and not be the last: 10,000 are looked through for each. Go on while there is a `nextCursor`.',
    pathParams: webhookParam,
    query: listQuery,
    ...outcome(
      {
        operationId: 'listDeliveries',
        tag: 'Deliveries',
        permission: 'webhooks:read',
        inPortal: true,
        errors: ['not_found', 'rule_violation'],
        deprecations: [formerSince],
      },
      { 200: pageOf(delivery, 'DeliveryPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/webhooks/:id/deliveries/:deliveryId',
    summary: 'Get a delivery with its attempts',
    description: 'One delivery and every HTTP exchange made for it.',
    pathParams: deliveryParams,
    ...outcome(
      {
        operationId: 'getDelivery',
        tag: 'Deliveries',
        permission: 'webhooks:read',
        inPortal: true,
        errors: ['not_found'],
      },
      { 200: deliveryWithAttempts },
    ),
  },
  getEvent: {
    method: 'GET',
    path: '/v1/webhooks/:id/deliveries/:deliveryId/event',
    summary: 'Get the event of a delivery',
    description: 'The event as it is pushed to this webhook, and its mode; a sample too.',
    pathParams: deliveryParams,
    ...outcome(
      {
        operationId: 'getDeliveryEvent',
        tag: 'Deliveries',
        permission: 'events:read',
        inPortal: true,
        errors: ['not_found'],
      },
      { 200: event },
    ),
  },
  resend: {
    method: 'POST',
    path: '/v1/webhooks/:id/deliveries/:deliveryId/resend',
    summary: 'Send a delivery again',
    description:
      'Makes the next attempt now. A delivery that is still pending keeps its place in the schedule; one that had ended starts the schedule anew.',
    pathParams: deliveryParams,
    body: z.strictObject({}).optional(),
    ...outcome(
      {
        operationId: 'resendDelivery',
        tag: 'Deliveries',
        permission: 'webhooks:write',
        inPortal: true,
        hasBody: true,
        idempotency: 'with-work',
        errors: ['not_found', 'webhook_disabled'],
      },
      { 202: delivery },
    ),
  },
  recover: {
    method: 'POST',
    path: '/v1/webhooks/:id/recover',
    summary: 'Send the events that a webhook has missed',
    description:
      'Sends, in the background and oldest first, the events since `since` that the webhook did not get: those that came while it was disabled or were never sent to it, and those whose delivery failed or was canceled. What counts is the webhook as it is now: its event types and its URL. Samples are left out, and so is what is on its way or was accepted. It reaches back as far as the retention of the service, less an hour or a tenth of it, whichever is shorter. One recovery of a webhook runs at a time: the same request again answers the one that is running, with `started: false`; one that differs is refused with `conflict`.',
    pathParams: webhookParam,
    body: recoverRequest,
    ...outcome(
      {
        operationId: 'recoverDeliveries',
        tag: 'Deliveries',
        permission: 'webhooks:write',
        inPortal: true,
        hasBody: true,
        idempotency: 'with-work',
        errors: ['not_found', 'conflict', 'webhook_disabled'],
      },
      { 202: startedRecovery },
    ),
  },
  listRecoveries: {
    method: 'GET',
    path: '/v1/webhooks/:id/recoveries',
    summary: 'List the recoveries of a webhook',
    description: 'Newest first. Those that ended are kept as long as events are.',
    pathParams: webhookParam,
    query: z.strictObject(pageQuery),
    ...outcome(
      {
        operationId: 'listRecoveries',
        tag: 'Deliveries',
        permission: 'webhooks:read',
        inPortal: true,
        errors: ['not_found'],
      },
      { 200: pageOf(recovery, 'RecoveryPage') },
    ),
  },
  getRecovery: {
    method: 'GET',
    path: '/v1/webhooks/:id/recoveries/:recoveryId',
    summary: 'Get a recovery',
    description: 'What a recovery sends, and how far it is.',
    pathParams: z.object({
      id: idSchema('webhook', 'The webhook.'),
      recoveryId: idSchema('recovery', 'The recovery.'),
    }),
    ...outcome(
      {
        operationId: 'getRecovery',
        tag: 'Deliveries',
        permission: 'webhooks:read',
        inPortal: true,
        errors: ['not_found'],
      },
      { 200: recovery },
    ),
  },
})
