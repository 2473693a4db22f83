import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { eventType, eventTypeName, eventTypes, unionByType } from './event-types.ts'
import { idSchema } from './ids.ts'
import { mode } from './mode.ts'
import { pageOf, pageQuery, timeFilters } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

const recorded = [...eventTypes.values()].map(({ body, exampleBody }) =>
  body.extend({ mode }).meta({
    id: `Recorded${body.meta()?.id}`,
    description: `${body.meta()?.description} With the mode, which a delivery has in a header.`,
    example: { ...exampleBody, mode: 'live' },
  }),
)

/** An event as it is pushed, and its mode: one shape for each type. */
export const event = unionByType(recorded, {
  id: 'Event',
  description: 'A fact, as it is pushed to webhooks, and its mode, which is in the header `X-Service-Mode` there.',
  example: { ...eventType('contact.created').exampleBody, mode: 'live' },
})

const pushedEvent = unionByType(
  [...eventTypes.values()].map(({ body }) => body),
  {
    id: 'PushedEvent',
    description: 'An event as it is pushed to webhooks: the body of a delivery.',
    example: eventType('contact.created').exampleBody,
  },
)

const eventTypeDescription = z
  .object({
    type: eventTypeName,
    meaning: z.string(),
    shared: z.boolean().meta({
      description:
        'Whether it is about what test and live keys share, and reaches webhooks and keys of both modes. Any other event reaches those of its own.',
    }),
    schema: z.record(z.string(), z.unknown()).meta({ description: 'The JSON Schema (2020-12) of the body.' }),
    // By this a path refers to every pushed body: generators (Go) leave out what only `webhooks` refer to.
    example: pushedEvent,
  })
  .meta({ id: 'EventType', description: 'A type of event: its meaning, schema and an example.' })

const eventTypeList = z
  .object({ data: z.array(eventTypeDescription) })
  .meta({ id: 'EventTypeList', description: 'Every type of event there is.' })

const listQuery = z.strictObject({
  ...pageQuery,
  type: eventTypeName.optional().meta({ description: 'Only events of this type.' }),
  ...timeFilters,
  after: idSchema(
    'event',
    'Only events after this one: the way to poll. 422 `event_not_found` when the key sees no such event, or not any more.',
  )
    .optional()
    // No example: in Swagger UI it would be sent, and an account without that event gets 422.
    .meta({ example: undefined }),
  order: z
    .enum(['desc', 'asc'])
    .optional()
    .meta({ description: 'Newest first (`desc`, the default) or oldest first (`asc`, the default with `after`).' }),
})

export type Event = z.infer<typeof event>
export type EventTypeDescription = z.infer<typeof eventTypeDescription>
export type EventListQuery = z.infer<typeof listQuery>

export const events = c.router({
  list: {
    method: 'GET',
    path: '/v1/events',
    summary: 'List events',
    description:
      'Newest first; or, to poll instead of being pushed to, oldest first: remember the id of the last event and give it as `after`. Events stand in the order in which they became visible, which is the same in every answer: none appears later before one that was shown, so a poller misses none and gets each once. With `since` or `until` a page can have fewer events than `limit`, even none, and not be the last: go on while there is a `nextCursor`.',
    query: listQuery,
    ...outcome(
      { operationId: 'listEvents', tag: 'Events', permission: 'events:read', errors: ['event_not_found'] },
      { 200: pageOf(event, 'EventPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/events/:id',
    summary: 'Get an event',
    description: 'One event, as it was pushed, and its mode.',
    pathParams: z.object({ id: idSchema('event', 'The event.') }),
    ...outcome(
      { operationId: 'getEvent', tag: 'Events', permission: 'events:read', errors: ['not_found'] },
      { 200: event },
    ),
  },
  listTypes: {
    method: 'GET',
    path: '/v1/event-types',
    summary: 'List event types',
    description: 'Every type of event: its meaning, the JSON Schema of its body and an example.',
    ...outcome({ operationId: 'listEventTypes', tag: 'Events', permission: 'events:read' }, { 200: eventTypeList }),
  },
})
