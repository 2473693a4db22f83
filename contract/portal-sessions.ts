import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { eventTypeName, eventTypeNames } from './event-types.ts'
import { boundedString, list, text, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { mode } from './mode.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { type Permission, permissions } from './permissions.ts'
import { outcome } from './route.ts'

const c = initContract()

/** How long the link of a portal session works. Minutes. */
export const portalLinkMinutes = 5
/** A portal session ends after this time without use, and after this time in all. Hours. */
export const portalSessionHours = { idle: 1, max: 24 } as const
/** Most portal sessions of one mode: of a customer, and of an account. The oldest ends for a new one. */
export const maxPortalSessions = { customer: 20, account: 5_000 } as const
/** Webhooks that a customer can have in the portal, of each mode, unless the operator sets another limit. */
export const defaultMaxCustomerWebhooks = 20
/** Tests of webhooks that a customer can have in flight in one process. */
export const maxConcurrentCustomerTests = 2

/** Begins the token of a portal session, so that it is taken for no API key. */
export const portalTokenPrefix = 'postern_portal_'

/** Permissions of a portal session. It has each of them only while the key or user that made it has it. */
export const portalPermissions = ['events:read', 'webhooks:read', 'webhooks:write'] as const satisfies Permission[]

const customer = text(500).min(1).meta({
  description: 'The webhooks with this value of `customer` in their metadata are those of the portal session.',
  example: '42',
})

/** A colour of the theme: `#` and six hexadecimal digits. */
export const accentColorPattern = /^#[0-9A-Fa-f]{6}$/
export const colorSchemes = ['auto', 'light', 'dark'] as const
export type ColorScheme = (typeof colorSchemes)[number]

const colorScheme = z.enum(colorSchemes).meta({ description: 'Light or dark; `auto`: as the browser asks for.' })
const accentColor = boundedString(7, { fault: 'must be a colour such as #3448c5' })
  .regex(accentColorPattern, 'must be a colour such as #3448c5')
  .meta({
    description: 'The colour of buttons and links. Its brightness is changed where text could not be read otherwise.',
    example: '#3448c5',
  })

const chosenTypes = list(eventTypeName, {
  min: 1,
  minFault: 'at least one event type is needed',
  max: eventTypeNames.length,
  fault: `must be at most ${eventTypeNames.length} event types: each may stand only once`,
}).refine((types) => new Set(types).size === types.length, 'each event type may stand only once')

const createPortalSession = z
  .strictObject({
    customer,
    eventTypes: chosenTypes.optional().meta({
      uniqueItems: true,
      description:
        'The event types that the customer may choose. Default: all. A webhook gets every event of its types in the account, whichever customer the event is about: name the types here that may be told to this customer.',
      example: ['email.delivered', 'email.bounced'],
    }),
    theme: z
      .strictObject({ accentColor: accentColor.optional(), colorScheme: colorScheme.optional() })
      .optional()
      .meta({ description: 'How the portal looks. Default: as the operator has set.' }),
  })
  .meta({
    id: 'CreatePortalSession',
    description: 'For whom, and how it looks.',
    example: { customer: '42', eventTypes: ['email.delivered', 'email.bounced'], theme: { accentColor: '#0f766e' } },
  })

const eventTypes = z
  .array(eventTypeName)
  .nullable()
  .meta({ description: 'The event types that the customer may choose; null: all.' })

const sessionFields = {
  id: idSchema('portalSession', 'Identifies the portal session.'),
  mode,
  customer: z.string().meta({ description: 'The customer whose webhooks it shows.' }),
  eventTypes,
  createdAt: timestamp,
  openedAt: timestamp.nullable().meta({ description: 'When its link was used; null before.' }),
  expiresAt: timestamp.meta({ description: 'When it ends if no request comes before.' }),
}

const sessionExample = {
  id: exampleId('portalSession'),
  mode: 'live',
  customer: '42',
  eventTypes: ['email.delivered', 'email.bounced'],
  createdAt: '2026-03-01T09:30:00.000Z',
  openedAt: null,
  expiresAt: '2026-03-01T09:35:00.000Z',
}

const portalSession = z.object(sessionFields).meta({
  id: 'PortalSession',
  description: 'Access of one customer to their webhooks.',
  example: sessionExample,
})

const portalSessionWithUrl = z
  .object({
    ...sessionFields,
    url: z.string().meta({
      format: 'uri',
      description: `The link, for a frame or a new tab of the customer. It works once, for ${portalLinkMinutes} minutes. Shown here and never again.`,
    }),
  })
  .meta({
    id: 'PortalSessionWithUrl',
    description: 'A portal session with its link, as answered when it is made.',
    example: {
      ...sessionExample,
      url: `https://mail.example.com/portal/${exampleId('portalSession')}#code=J9Vx2vF0c8wq1mY7rT5bN3kD6hS4gA2zPQeLuXiOoWk`,
    },
  })

const portalAccess = z
  .object({
    id: idSchema('portalSession', 'Identifies the portal session: the value of `X-Postern-Portal`.'),
    mode,
    customer: z.string(),
    eventTypes,
    permissions: z.array(z.enum(permissions)).meta({ description: 'What the portal session may do at present.' }),
    theme: z.object({
      accentColor: z.string().nullable().meta({ description: 'Null: that of Postern.' }),
      colorScheme,
    }),
    expiresAt: timestamp.meta({ description: 'When it ends if no request comes before.' }),
  })
  .meta({
    id: 'PortalAccess',
    description: 'What the portal shows, and how.',
    example: {
      id: exampleId('portalSession'),
      mode: 'live',
      customer: '42',
      eventTypes: null,
      permissions: ['events:read', 'webhooks:read', 'webhooks:write'],
      theme: { accentColor: '#0f766e', colorScheme: 'auto' },
      expiresAt: '2026-03-01T10:35:00.000Z',
    },
  })

const exampleToken = 'x'.repeat(43)
const openPortalSession = z
  .strictObject({
    code: boundedString(43)
      .regex(/^[\w-]{43}$/, 'must be the code of a link')
      .meta({ description: 'What stands behind `#code=` in the link.', example: exampleToken }),
  })
  .meta({ id: 'OpenPortalSession', description: 'The code of the link.', example: { code: exampleToken } })

const openedPortalSession = z
  .object({
    ...portalAccess.shape,
    token: z.string().meta({
      description:
        'Takes the place of an API key in the operations of the portal. For browsers that refuse the cookie; keep it in memory alone.',
    }),
  })
  .meta({
    id: 'OpenedPortalSession',
    description: 'The portal session, and its token.',
    example: { ...Object(portalAccess.meta()?.example), token: portalTokenPrefix + exampleToken },
  })

const listQuery = z.strictObject({
  ...pageQuery,
  customer: customer.optional().meta({ description: 'Only those of this customer.', example: undefined }),
})

export type CreatePortalSession = z.infer<typeof createPortalSession>
export type PortalSession = z.infer<typeof portalSession>
export type PortalSessionWithUrl = z.infer<typeof portalSessionWithUrl>
export type PortalSessionListQuery = z.infer<typeof listQuery>
export type PortalAccess = z.infer<typeof portalAccess>
export type OpenedPortalSession = z.infer<typeof openedPortalSession>

export const portalSessions = c.router({
  create: {
    method: 'POST',
    path: '/v1/portal-sessions',
    summary: 'Create a portal session',
    description: `Answers a link for one of your customers: behind it are the screens for the webhooks that have this \`customer\` in their metadata, in the mode of the caller. The link works once, for ${portalLinkMinutes} minutes; the session ends after ${portalSessionHours.idle} hour without use, after ${portalSessionHours.max} hours in all, and when the key or user that made it may no longer do so. A customer has ${maxPortalSessions.customer} sessions at most and an account ${maxPortalSessions.account.toLocaleString('en')}, of each mode; the oldest ends for a new one.`,
    body: createPortalSession,
    ...outcome(
      {
        operationId: 'createPortalSession',
        tag: 'Portal',
        permission: 'webhooks:write',
        hasBody: true,
        idempotency: 'with-work',
        keptFor: 'caller',
      },
      { 201: portalSessionWithUrl },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/portal-sessions',
    summary: 'List portal sessions',
    description: 'Newest first, those of the mode of the caller that have not ended.',
    query: listQuery,
    ...outcome(
      { operationId: 'listPortalSessions', tag: 'Portal', permission: 'webhooks:read' },
      { 200: pageOf(portalSession, 'PortalSessionPage') },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/portal-sessions/:id',
    summary: 'End a portal session',
    description: 'Ends it at once, and with it its link.',
    pathParams: z.object({ id: idSchema('portalSession', 'The portal session.') }),
    ...outcome(
      { operationId: 'deletePortalSession', tag: 'Portal', permission: 'webhooks:write', errors: ['not_found'] },
      { 204: c.noBody() },
    ),
  },
  open: {
    method: 'POST',
    path: '/v1/portal-session',
    summary: 'Open the portal',
    description:
      'Uses the link of a portal session: sets its cookie, and answers its token for browsers that refuse the cookie. The link works once: an unknown, used or expired one is not there, 404.',
    body: openPortalSession,
    ...outcome(
      {
        operationId: 'openPortalSession',
        tag: 'Portal',
        caller: 'none',
        permission: null,
        hasBody: true,
        errors: ['not_found'],
      },
      { 201: openedPortalSession },
    ),
  },
  current: {
    method: 'GET',
    path: '/v1/portal-session',
    summary: 'Get the portal session',
    description: 'What the portal of this request shows, and how.',
    ...outcome(
      { operationId: 'getPortalSession', tag: 'Portal', caller: 'portal', permission: null },
      { 200: portalAccess },
    ),
  },
})
