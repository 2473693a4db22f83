import { z } from 'zod'
import { emailAddress, recipientAddress, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import type { Mode } from './mode.ts'

/*
 * Every event type: what it means, the shape of its `data` and an example. The one table: outgoing
 * bodies are validated against it, the published spec and `GET /v1/event-types` are made from it.
 */

const at = '2026-03-01T09:30:00.000Z'
const who = 'ada@example.com'
const emailId = exampleId('email')
const subscriberId = exampleId('subscriber')
const audienceId = exampleId('audience')
const domainId = exampleId('domain')
const campaignId = exampleId('campaign')

const oneEmail = {
  emailId: idSchema('email', 'The message.'),
  to: recipientAddress.meta({ description: 'The recipient this event is about.', example: who }),
  subject: z.string(),
}
const oneEmailExample = { emailId, to: who, subject: 'Welcome' }

const browser = {
  userAgent: z.string().nullable().meta({ description: 'The `User-Agent` of the request, if there was one.' }),
  ipAddress: z.string().nullable().meta({ description: 'Where the request came from.' }),
  automated: z.boolean().meta({ description: "Whether it looks like a machine's doing (a scanner, a prefetcher)." }),
}
const browserExample = { userAgent: 'Mozilla/5.0', ipAddress: '203.0.113.7', automated: false }

const onePerson = {
  subscriberId: idSchema('subscriber', 'The person.'),
  email: emailAddress,
  status: z.enum(['active', 'unsubscribed']),
}
const oneContact = {
  subscriberId: idSchema('subscriber', 'The person.'),
  audienceId: idSchema('audience', 'The list.'),
}
const oneDomain = {
  domainId: idSchema('domain', 'The sending domain.'),
  domain: z.string().meta({ description: 'Its name.', example: 'example.com' }),
}
const oneCampaign = {
  campaignId: idSchema('campaign', 'The campaign.'),
  audienceId: idSchema('audience', 'The audience it goes to.'),
  name: z.string(),
}
const oneCampaignExample = { campaignId, audienceId, name: 'Spring news' }
const count = z.int().min(0)

type Definition = {
  meaning: string
  /**
   * Whether it is about what test and live keys share (people, lists, domains): then webhooks and keys of
   * both modes get it. Any other event stays in the mode of what caused it.
   */
  shared: boolean
  /** The name of the time field of the body: the spec has `timestamp` for email events only. */
  timeField: 'timestamp' | 'created'
  data: z.ZodObject
  example: Record<string, unknown>
}

const definitions = {
  'email.sent': {
    meaning: 'Email was sent',
    shared: false,
    timeField: 'timestamp',
    data: z.object({ ...oneEmail, sentAt: timestamp }),
    example: { ...oneEmailExample, sentAt: at },
  },
  'email.delivered': {
    meaning: 'Email was delivered',
    shared: false,
    timeField: 'timestamp',
    data: z.object({ ...oneEmail, deliveredAt: timestamp }),
    example: { ...oneEmailExample, deliveredAt: at },
  },
  'email.opened': {
    meaning: 'Email was opened',
    shared: false,
    timeField: 'timestamp',
    data: z.object({ ...oneEmail, openedAt: timestamp, ...browser }),
    example: { ...oneEmailExample, openedAt: at, ...browserExample },
  },
  'email.clicked': {
    meaning: 'Link in email was clicked',
    shared: false,
    timeField: 'timestamp',
    data: z.object({ ...oneEmail, clickedAt: timestamp, link: z.url(), ...browser }),
    example: { ...oneEmailExample, clickedAt: at, link: 'https://example.com/news', ...browserExample },
  },
  'email.bounced': {
    meaning: 'Email bounced',
    shared: false,
    timeField: 'timestamp',
    data: z.object({
      ...oneEmail,
      bouncedAt: timestamp,
      bounceType: z.enum(['hard', 'soft']),
      reason: z.string(),
      diagnosticCode: z.string().nullable().meta({ description: 'What the receiving server said, as it said it.' }),
    }),
    example: {
      ...oneEmailExample,
      bouncedAt: at,
      bounceType: 'hard',
      reason: 'The mailbox does not exist.',
      diagnosticCode: '550 5.1.1 user unknown',
    },
  },
  'email.complained': {
    meaning: 'Recipient marked as spam',
    shared: false,
    timeField: 'timestamp',
    data: z.object({ ...oneEmail, complainedAt: timestamp, feedbackType: z.string() }),
    example: { ...oneEmailExample, complainedAt: at, feedbackType: 'abuse' },
  },
  'email.failed': {
    meaning: 'Email failed to send',
    shared: false,
    timeField: 'timestamp',
    data: z.object({ ...oneEmail, failedAt: timestamp, reason: z.string() }),
    example: { ...oneEmailExample, failedAt: at, reason: 'The receiving server could not be reached for 72 hours.' },
  },
  'email.delivery_delayed': {
    meaning: 'Delivery delayed by the receiving server',
    shared: false,
    timeField: 'timestamp',
    data: z.object({ ...oneEmail, delayedAt: timestamp, reason: z.string() }),
    example: { ...oneEmailExample, delayedAt: at, reason: '451 4.7.1 try again later' },
  },
  'subscriber.added': {
    meaning: 'Subscriber was added',
    shared: true,
    timeField: 'created',
    data: z.object(onePerson),
    example: { subscriberId, email: who, status: 'active' },
  },
  'subscriber.removed': {
    meaning: 'Subscriber was removed',
    shared: true,
    timeField: 'created',
    data: z.object(onePerson),
    example: { subscriberId, email: who, status: 'active' },
  },
  'subscriber.unsubscribed': {
    meaning: 'Subscriber unsubscribed',
    shared: true,
    timeField: 'created',
    data: z.object(onePerson),
    example: { subscriberId, email: who, status: 'unsubscribed' },
  },
  'contact.created': {
    meaning: 'New contact added to an audience',
    shared: true,
    timeField: 'created',
    data: z.object({
      ...oneContact,
      email: emailAddress,
      status: z.enum(['active', 'unsubscribed', 'pending']).meta({
        description:
          '`pending`: the person was asked to confirm. When they do, `contact.updated` has `status` among its `changes`.',
      }),
    }),
    example: { subscriberId, audienceId, email: who, status: 'active' },
  },
  'contact.updated': {
    meaning: 'Contact details or status updated',
    shared: true,
    timeField: 'created',
    data: z.object({
      ...oneContact,
      email: emailAddress,
      changes: z
        .array(z.enum(['email', 'firstName', 'lastName', 'properties', 'status', 'topics']))
        .min(1)
        .meta({ description: 'The fields that really changed.' }),
    }),
    example: { subscriberId, audienceId, email: who, changes: ['firstName', 'status'] },
  },
  'contact.deleted': {
    meaning: 'Contact removed from an audience',
    shared: true,
    timeField: 'created',
    data: z.object(oneContact),
    example: { subscriberId, audienceId },
  },
  'domain.created': {
    meaning: 'Sending domain added',
    shared: true,
    timeField: 'created',
    data: z.object({ ...oneDomain, status: z.enum(['pending']) }),
    example: { domainId, domain: 'example.com', status: 'pending' },
  },
  'domain.verified': {
    meaning: 'Domain completed DNS verification',
    shared: true,
    timeField: 'created',
    data: z.object(oneDomain),
    example: { domainId, domain: 'example.com' },
  },
  'domain.deleted': {
    meaning: 'Sending domain removed',
    shared: true,
    timeField: 'created',
    data: z.object(oneDomain),
    example: { domainId, domain: 'example.com' },
  },
  'campaign.sent': {
    meaning: 'Campaign started sending',
    shared: false,
    timeField: 'created',
    data: z.object({
      ...oneCampaign,
      recipients: z.object({ total: count.meta({ description: 'People it goes to.' }) }),
    }),
    example: { ...oneCampaignExample, recipients: { total: 1200 } },
  },
  'campaign.completed': {
    meaning: 'Campaign finished sending',
    shared: false,
    timeField: 'created',
    data: z.object({
      ...oneCampaign,
      recipients: z.object({
        total: count.meta({ description: 'People it went to: `sent` and `failed` together.' }),
        sent: count.meta({
          description:
            'Those to whom the first attempt was made, whatever came of it: `handedOver` of the statistics. Their emails have events of their own.',
        }),
        failed: count.meta({
          description:
            'All others: those in `skipped`, those for whom the content could not be rendered, and those whose email was canceled.',
        }),
        deferred: count.meta({
          description:
            'Those of `sent` who were still tried at that moment: a mail server had refused the message for now.',
        }),
        skipped: count.meta({
          description:
            'Those of `failed` who had left the audience, were unsubscribed or were suppressed when it was their turn.',
        }),
      }),
    }),
    example: { ...oneCampaignExample, recipients: { total: 1200, sent: 1198, failed: 2, deferred: 5, skipped: 1 } },
  },
} as const satisfies Record<string, Definition>

export type EventTypeName = keyof typeof definitions

/** The `data` of one event type. */
export type EventData<T extends EventTypeName> = z.infer<(typeof definitions)[T]['data']>

/** The names of all event types, in the order of the spec. */
export const eventTypeNames = Object.keys(definitions) as [EventTypeName, ...EventTypeName[]]

/** The types of events that reach both modes. */
export const sharedEventTypes: readonly EventTypeName[] = eventTypeNames.filter((name) => definitions[name].shared)

/** Returns true when an event of this type, which was caused in `from`, reaches the webhooks and keys of `to`. */
export function reachesMode(type: string, from: Mode, to: Mode): boolean {
  return from === to || (isEventTypeName(type) && definitions[type].shared)
}

/** Returns true when `name` is an event type of this version. */
export function isEventTypeName(name: string): name is EventTypeName {
  return Object.hasOwn(definitions, name)
}

export const eventTypeName = z.enum(eventTypeNames).meta({ id: 'EventTypeName', description: 'A type of event.' })

export type EventTypeDefinition = Definition & {
  name: EventTypeName
  /** The schema of the whole body of a delivery. */
  body: z.ZodObject
  exampleBody: Record<string, unknown>
}

/** `contact.created` → `ContactCreated`: the name of its component in the published spec. */
function componentName(name: string): string {
  return name
    .split(/[._]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
}

/** Every event type with the schema and an example of its whole body: `id`, `type`, a time, `data`. */
export const eventTypes: ReadonlyMap<EventTypeName, EventTypeDefinition> = new Map(
  eventTypeNames.map((name) => {
    const definition: Definition = definitions[name]
    const exampleBody = {
      id: exampleId('event'),
      type: name,
      [definition.timeField]: at,
      data: definition.example,
    }
    const body = z
      .object({
        id: idSchema('event', 'Identifies the event; the same on every attempt, for deduplication.'),
        type: z.literal(name),
        [definition.timeField]: timestamp,
        // Named, or generators make up a name, and one of another type where the fields are the same.
        data: definition.data.meta({
          id: `${componentName(name)}EventData`,
          description: `What an event of the type \`${name}\` says.`,
        }),
      })
      .meta({ id: `${componentName(name)}Event`, description: `${definition.meaning}.`, example: exampleBody })
    return [name, { ...definition, name, body, exampleBody }]
  }),
)

/**
 * A union of bodies that `type` tells apart. `id` and `type`, which all have, stand beside the members too, so that
 * generated types without union types (Go) have them as fields.
 */
export function unionByType(
  bodies: readonly z.ZodObject[],
  about: { id: string; description: string; example: object },
) {
  return z.discriminatedUnion('type', bodies as [z.ZodObject, ...z.ZodObject[]]).meta({
    ...about,
    type: 'object',
    properties: { id: { type: 'string' }, type: { $ref: '#/components/schemas/EventTypeName' } },
    required: ['id', 'type'],
  })
}

/** The definition of one event type. */
export function eventType(name: EventTypeName): EventTypeDefinition {
  const definition = eventTypes.get(name)
  if (definition === undefined) throw new Error(`no such event type: ${name}`)
  return definition
}
