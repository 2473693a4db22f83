import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { eventType, eventTypeName, eventTypes, unionByType } from './event-types.ts'
import { exampleId, idSchema, idSchemaOf } from './ids.ts'
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

/** The kinds of ids that events are searched by: of the event itself, and of the objects that an event is about. */
export const searchedKinds = ['event', 'email', 'subscriber', 'audience', 'domain', 'campaign'] as const

const listQuery = z.strictObject({
  ...pageQuery,
  type: eventTypeName.optional().meta({ description: 'Only events of this type.' }),
  search: idSchemaOf(
    searchedKinds,
    'Only the event with this id, or events about the email, subscriber, audience, domain or campaign with this id. The whole id: no part of it, and no other text.',
  )
    .optional()
    // No example: in Swagger UI it would be sent, and leave out everything.
    .meta({ example: undefined }),
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
      'Newest first; or, to poll instead of being pushed to, oldest first: remember the id of the last event and give it as `after`. Events stand in the order in which they became visible, which is the same in every answer: none appears later before one that was shown, so a poller misses none and gets each once. With `since`, `until` or the `search` for what events are about, a page can have fewer events than `limit`, even none, and not be the last: go on while there is a `nextCursor`. Such a search begins when its object was made, so that with `order=asc` the first events about it come at once.',
    query: listQuery,
    ...outcome(
      { operationId: 'listEvents', tag: 'Events', permission: 'events:read', errors: ['event_not_found'] },
      { 200: pageOf(event, 'EventPage') },
    ),
  },
  stream: {
    method: 'GET',
    path: '/v1/events/stream',
    summary: 'Follow events',
    description:
      'Sends events as they become visible, as server-sent events (WHATWG HTML §9.2). Each has its `id`; its `data` is the event as JSON on one line, as `GET /v1/events/:id` returns it. The order is that of polling. Without `Last-Event-ID` and `after` the stream begins now, and its first line names the event that it begins after. A client that sends the last `id` it received as `Last-Event-ID`, as `EventSource` does, misses no event and receives none twice. The service sends a comment every 15 seconds. The stream ends within 30 seconds after its key is revoked or its session ends, and when the service stops: open it again. A reader that takes nothing for 30 seconds is cut off.',
    query: z.strictObject({
      type: eventTypeName.optional().meta({ description: 'Only events of this type.' }),
      after: idSchema('event', 'Only events after this one, for clients that cannot set `Last-Event-ID`, which wins.')
        .optional()
        // No example: in Swagger UI it would be sent, and an account without that event gets 422.
        .meta({ example: undefined }),
    }),
    ...outcome(
      { operationId: 'streamEvents', tag: 'Events', permission: 'events:read', errors: ['event_not_found'] },
      {
        200: c.otherResponse({
          contentType: 'text/event-stream',
          body: z.string().meta({
            description: 'Server-sent events, without an end.',
            example: `id: ${exampleId('event')}\ndata: ${JSON.stringify({ ...eventType('contact.created').exampleBody, mode: 'live' })}\n\n`,
          }),
        }),
      },
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
    ...outcome(
      { operationId: 'listEventTypes', tag: 'Events', permission: 'events:read', inPortal: true },
      { 200: eventTypeList },
    ),
  },
})
