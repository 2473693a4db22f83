import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { eventType, eventTypeName, eventTypes } from './event-types.ts'
import { timeInput } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

const bodies = [...eventTypes.values()].map((type) => type.body)

/** An event as it is pushed: one shape for each type. */
export const event = z.discriminatedUnion('type', bodies as [z.ZodObject, ...z.ZodObject[]]).meta({
  id: 'Event',
  description: 'A fact, exactly as it is pushed to webhooks.',
  example: eventType('contact.created').exampleBody,
})

const eventTypeDescription = z
  .object({
    type: eventTypeName,
    meaning: z.string(),
    schema: z.record(z.string(), z.unknown()).meta({ description: 'The JSON Schema (2020-12) of the body.' }),
    example: z.record(z.string(), z.unknown()).meta({ description: 'A body of this type.' }),
  })
  .meta({ id: 'EventType', description: 'A type of event: its meaning, schema and an example.' })

const eventTypeList = z
  .object({ data: z.array(eventTypeDescription) })
  .meta({ id: 'EventTypeList', description: 'Every type of event there is.' })

const listQuery = z.strictObject({
  ...pageQuery,
  type: eventTypeName.optional().meta({ description: 'Only events of this type.' }),
  since: timeInput.optional().meta({ description: 'Only events of this time or later.' }),
  after: idSchema('event', 'Only events after this one: the way to poll.')
    .optional()
    .meta({ example: exampleId('event') }),
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
      'Newest first; or, to poll instead of being pushed to, oldest first: remember the id of the last event and give it as `after`. Read oldest first, an event is shown only when none can appear before it any more, so that a poller misses nothing.',
    query: listQuery,
    ...outcome(
      { operationId: 'listEvents', tag: 'Events', permission: 'events:read' },
      { 200: pageOf(event, 'EventPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/events/:id',
    summary: 'Get an event',
    description: 'One event, exactly as it was pushed.',
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
