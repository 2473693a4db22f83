import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { givenProperties, shownProperties } from './contact-properties.ts'
import { emailAddress, searchText, text, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

export const personName = text(200)

/** The search parameter of lists of people. */
export const peopleSearch = searchText(
  'Only those whose address, name or last name begins with this, in any letter case; the name is first and last name with a space. Of more than 500 people of the account with such an address, such a name or such a last name, the first 500 by alphabet are found.',
)

export const subscriptionStatus = z.enum(['active', 'unsubscribed', 'pending']).meta({
  id: 'SubscriptionStatus',
  description:
    'Whether mail is wanted. `pending`: of a contact alone, in an audience with `doubleOptIn`: the person was asked to confirm, and has not yet.',
})

const subscriber = z
  .object({
    id: idSchema('subscriber', 'Identifies the person.'),
    email: emailAddress,
    firstName: z.string().nullable(),
    lastName: z.string().nullable(),
    status: subscriptionStatus,
    properties: shownProperties,
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({
    id: 'Subscriber',
    description: 'A person, once per account and address (compared without regard to case).',
    example: {
      id: exampleId('subscriber'),
      email: 'ada@example.com',
      firstName: 'Ada',
      lastName: 'Lovelace',
      status: 'active',
      properties: { plan: 'pro' },
      createdAt: '2026-03-01T09:30:00.000Z',
      updatedAt: '2026-03-01T09:30:00.000Z',
    },
  })

const createSubscriber = z
  .strictObject({
    email: emailAddress,
    firstName: personName.nullable().optional(),
    lastName: personName.nullable().optional(),
    properties: givenProperties.optional(),
  })
  .meta({ id: 'CreateSubscriber', description: 'Who to add.', example: { email: 'ada@example.com', firstName: 'Ada' } })

const updateSubscriber = z
  .strictObject({
    email: emailAddress.optional(),
    firstName: personName.nullable().optional(),
    lastName: personName.nullable().optional(),
    status: subscriptionStatus.optional(),
    properties: givenProperties.optional(),
  })
  .meta({ id: 'UpdateSubscriber', description: 'The fields to change.', example: { firstName: 'Augusta' } })

const listQuery = z.strictObject({
  ...pageQuery,
  search: peopleSearch.optional(),
  email: emailAddress.optional().meta({ description: 'Only the person with this address.' }),
  status: subscriptionStatus.optional(),
})

const idParam = z.object({ id: idSchema('subscriber', 'The person.') })

export type Subscriber = z.infer<typeof subscriber>
export type CreateSubscriber = z.infer<typeof createSubscriber>
export type UpdateSubscriber = z.infer<typeof updateSubscriber>
export type SubscriberListQuery = z.infer<typeof listQuery>
/** Of a contact. */
export type SubscriptionStatus = z.infer<typeof subscriptionStatus>
/** Of a subscriber. `pending` is a status of contacts only: people confirm each audience, not all at once. */
export type PersonStatus = Exclude<SubscriptionStatus, 'pending'>

export const subscribers = c.router({
  create: {
    method: 'POST',
    path: '/v1/subscribers',
    summary: 'Create a subscriber',
    description: 'Adds a person. Emits `subscriber.added`. 409 when the address is there already.',
    body: createSubscriber,
    ...outcome(
      {
        operationId: 'createSubscriber',
        tag: 'Subscribers',
        permission: 'subscribers:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['conflict', 'rule_violation'],
      },
      { 201: subscriber },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/subscribers',
    summary: 'List subscribers',
    description:
      'Newest first. With `status` a page can have fewer people than `limit`, even none, and not be the last: go on while there is a `nextCursor`.',
    query: listQuery,
    ...outcome(
      { operationId: 'listSubscribers', tag: 'Subscribers', permission: 'subscribers:read' },
      { 200: pageOf(subscriber, 'SubscriberPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/subscribers/:id',
    summary: 'Get a subscriber',
    description: 'One person.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'getSubscriber', tag: 'Subscribers', permission: 'subscribers:read', errors: ['not_found'] },
      { 200: subscriber },
    ),
  },
  update: {
    method: 'PATCH',
    path: '/v1/subscribers/:id',
    summary: 'Update a subscriber',
    description:
      'Changes the fields given. Emits `contact.updated` for each audience when the address, a name or a property really changed. `status: "unsubscribed"` does what unsubscribing does; `"active"` lets the person be written to again, also where they had unsubscribed by the link of an email; for one who unsubscribed that needs a live key, and so does another address of theirs, or of one who is `active` in an audience with `doubleOptIn`.',
    pathParams: idParam,
    body: updateSubscriber,
    ...outcome(
      {
        operationId: 'updateSubscriber',
        tag: 'Subscribers',
        permission: 'subscribers:write',
        hasBody: true,
        errors: ['not_found', 'conflict', 'rule_violation'],
      },
      { 200: subscriber },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/subscribers/:id',
    summary: 'Delete a subscriber',
    description:
      'Removes the person from everything. Emits `contact.deleted` for each audience, then `subscriber.removed`. For a person who unsubscribed, from everything, from an audience or from a topic, that needs a live key.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'deleteSubscriber', tag: 'Subscribers', permission: 'subscribers:write', errors: ['not_found'] },
      { 204: c.noBody() },
    ),
  },
  unsubscribe: {
    method: 'POST',
    path: '/v1/subscribers/:id/unsubscribe',
    summary: 'Unsubscribe a subscriber',
    description:
      'From everything. Emits `subscriber.unsubscribed` and `contact.updated` for each audience; nothing when the person was unsubscribed already.',
    pathParams: idParam,
    body: z.strictObject({}).optional(),
    ...outcome(
      {
        operationId: 'unsubscribeSubscriber',
        tag: 'Subscribers',
        permission: 'subscribers:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['not_found'],
      },
      { 200: subscriber },
    ),
  },
})
