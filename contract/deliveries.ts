import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { eventTypeName } from './event-types.ts'
import { timeInput, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

export const deliveryStatus = z.enum(['pending', 'succeeded', 'failed', 'canceled']).meta({
  id: 'DeliveryStatus',
  description:
    '`pending`: an attempt is due or running. `succeeded`: the endpoint answered 2xx. `failed`: the last attempt failed. `canceled`: the webhook was disabled or deleted first.',
})

const deliveryFields = {
  id: idSchema('delivery', 'Identifies the delivery.'),
  eventId: idSchema('event', 'The event it carries.'),
  eventType: eventTypeName,
  status: deliveryStatus,
  attemptCount: z.int().min(0).meta({ description: 'Attempts made so far.' }),
  nextAttemptAt: timestamp.nullable().meta({ description: 'When the next attempt is due; null when none is.' }),
  createdAt: timestamp,
  completedAt: timestamp.nullable().meta({ description: 'When it succeeded, failed or was canceled.' }),
}

const deliveryExample = {
  id: exampleId('delivery'),
  eventId: exampleId('event'),
  eventType: 'contact.created',
  status: 'pending',
  attemptCount: 1,
  nextAttemptAt: '2026-03-01T09:31:00.120Z',
  createdAt: '2026-03-01T09:30:00.010Z',
  completedAt: null,
}

export const delivery = z
  .object(deliveryFields)
  .meta({ id: 'Delivery', description: 'One event on its way to one webhook.', example: deliveryExample })

const attemptExample = {
  number: 1,
  startedAt: '2026-03-01T09:30:00.020Z',
  durationMs: 100,
  responseStatus: 500,
  responseBody: 'Internal Server Error',
  error: 'The endpoint answered 500.',
}

const attempt = z
  .object({
    number: z.int().min(1).meta({ description: 'Counted from 1.' }),
    startedAt: timestamp,
    durationMs: z.int().min(0).meta({ description: 'Milliseconds from the start to the answer or the failure.' }),
    responseStatus: z
      .int()
      .nullable()
      .meta({ description: 'The status the endpoint answered; null without an answer.' }),
    responseBody: z
      .string()
      .nullable()
      .meta({ description: 'The first 4 KiB of the answer as text; null without an answer.' }),
    error: z.string().nullable().meta({ description: 'Why the attempt failed; null when it succeeded.' }),
  })
  .meta({ id: 'Attempt', description: 'One HTTP exchange of a delivery.', example: attemptExample })

export const deliveryWithAttempts = z.object({ ...deliveryFields, attempts: z.array(attempt) }).meta({
  id: 'DeliveryWithAttempts',
  description: 'A delivery with all its attempts, first to last.',
  example: { ...deliveryExample, attempts: [attemptExample] },
})

const recovery = z
  .object({ count: z.int().min(0).meta({ description: 'How many deliveries will be sent again.' }) })
  .meta({ id: 'Recovery', description: 'What a recovery will send again.', example: { count: 42 } })

const webhookParam = z.object({ id: idSchema('webhook', 'The webhook.') })
const deliveryParams = z.object({
  id: idSchema('webhook', 'The webhook.'),
  deliveryId: idSchema('delivery', 'The delivery.'),
})

const listQuery = z.strictObject({
  ...pageQuery,
  status: deliveryStatus.optional(),
  eventType: eventTypeName.optional(),
  from: timeInput.optional().meta({ description: 'Only those created at or after this time.' }),
  until: timeInput.optional().meta({ description: 'Only those created before this time.' }),
})

export type Delivery = z.infer<typeof delivery>
export type DeliveryStatus = z.infer<typeof deliveryStatus>
export type DeliveryWithAttempts = z.infer<typeof deliveryWithAttempts>
export type DeliveryListQuery = z.infer<typeof listQuery>

export const deliveries = c.router({
  list: {
    method: 'GET',
    path: '/v1/webhooks/:id/deliveries',
    summary: 'List the deliveries of a webhook',
    description: 'Newest first, test deliveries included.',
    pathParams: webhookParam,
    query: listQuery,
    ...outcome(
      { operationId: 'listDeliveries', tag: 'Deliveries', permission: 'webhooks:read', errors: ['not_found'] },
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
      { operationId: 'getDelivery', tag: 'Deliveries', permission: 'webhooks:read', errors: ['not_found'] },
      { 200: deliveryWithAttempts },
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
    summary: 'Send everything that failed again',
    description:
      'Sends every delivery created since `since` that failed or was canceled again, in the background, oldest first.',
    pathParams: webhookParam,
    body: z.strictObject({ since: timeInput }).meta({
      id: 'RecoverDeliveries',
      description: 'What to send again.',
      example: { since: '2026-03-01T00:00:00Z' },
    }),
    ...outcome(
      {
        operationId: 'recoverDeliveries',
        tag: 'Deliveries',
        permission: 'webhooks:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['not_found', 'webhook_disabled'],
      },
      { 202: recovery },
    ),
  },
})
