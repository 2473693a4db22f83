import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { emailAddress, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'
import { peopleSearch, personName, subscriptionStatus } from './subscribers.ts'

const c = initContract()

const contact = z
  .object({
    audienceId: idSchema('audience', 'The list.'),
    subscriberId: idSchema('subscriber', 'The person.'),
    email: emailAddress,
    firstName: z.string().nullable(),
    lastName: z.string().nullable(),
    status: subscriptionStatus,
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({
    id: 'Contact',
    description: 'The membership of one subscriber in one audience.',
    example: {
      audienceId: exampleId('audience'),
      subscriberId: exampleId('subscriber'),
      email: 'ada@example.com',
      firstName: 'Ada',
      lastName: 'Lovelace',
      status: 'active',
      createdAt: '2026-03-01T09:30:00.000Z',
      updatedAt: '2026-03-01T09:30:00.000Z',
    },
  })

const subscriberContact = z
  .object({
    audienceId: idSchema('audience', 'The list.'),
    audienceName: z.string(),
    status: subscriptionStatus,
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({
    id: 'SubscriberContact',
    description: 'One of the audiences that a subscriber is in.',
    example: {
      audienceId: exampleId('audience'),
      audienceName: 'Newsletter',
      status: 'active',
      createdAt: '2026-03-01T09:30:00.000Z',
      updatedAt: '2026-03-01T09:30:00.000Z',
    },
  })

const addContact = z
  .strictObject({
    email: emailAddress,
    firstName: personName.nullable().optional(),
    lastName: personName.nullable().optional(),
  })
  .meta({
    id: 'AddContact',
    description: 'Who to add. Names are taken for a person who is new; those of a known person stay.',
    example: { email: 'ada@example.com', firstName: 'Ada' },
  })

const updateContact = z
  .strictObject({
    firstName: personName.nullable().optional(),
    lastName: personName.nullable().optional(),
    status: subscriptionStatus.optional(),
  })
  .meta({ id: 'UpdateContact', description: 'The fields to change.', example: { status: 'unsubscribed' } })

const listQuery = z.strictObject({
  ...pageQuery,
  search: peopleSearch.optional(),
  status: subscriptionStatus.optional(),
})

const audienceParam = z.object({ audienceId: idSchema('audience', 'The audience.') })
const contactParams = z.object({
  audienceId: idSchema('audience', 'The audience.'),
  subscriberId: idSchema('subscriber', 'The person.'),
})

export type Contact = z.infer<typeof contact>
export type SubscriberContact = z.infer<typeof subscriberContact>
export type AddContact = z.infer<typeof addContact>
export type ContactListQuery = z.infer<typeof listQuery>
export type UpdateContact = z.infer<typeof updateContact>

export const contacts = c.router({
  add: {
    method: 'POST',
    path: '/v1/audiences/:audienceId/contacts',
    summary: 'Add a contact',
    description:
      'Puts a person on the list, and makes the subscriber if the address is new. Emits `subscriber.added` (if new) and `contact.created`. A person who unsubscribed from everything is added as `unsubscribed`. 409 when the person is on the list already.',
    pathParams: audienceParam,
    body: addContact,
    ...outcome(
      {
        operationId: 'addContact',
        tag: 'Contacts',
        permission: 'contacts:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['not_found', 'conflict'],
      },
      { 201: contact },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/audiences/:audienceId/contacts',
    summary: 'List the contacts of an audience',
    description:
      'Newest subscribers first. With `status` a page can have fewer contacts than `limit`, even none, and not be the last: go on while there is a `nextCursor`.',
    pathParams: audienceParam,
    query: listQuery,
    ...outcome(
      { operationId: 'listContacts', tag: 'Contacts', permission: 'contacts:read', errors: ['not_found'] },
      { 200: pageOf(contact, 'ContactPage') },
    ),
  },
  listOfSubscriber: {
    method: 'GET',
    path: '/v1/subscribers/:id/contacts',
    summary: 'List the audiences of a subscriber',
    description: 'The contacts of one person, newest audiences first.',
    pathParams: z.object({ id: idSchema('subscriber', 'The person.') }),
    query: z.strictObject(pageQuery),
    ...outcome(
      { operationId: 'listSubscriberContacts', tag: 'Contacts', permission: 'contacts:read', errors: ['not_found'] },
      { 200: pageOf(subscriberContact, 'SubscriberContactPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/audiences/:audienceId/contacts/:subscriberId',
    summary: 'Get a contact',
    description: 'One contact.',
    pathParams: contactParams,
    ...outcome(
      { operationId: 'getContact', tag: 'Contacts', permission: 'contacts:read', errors: ['not_found'] },
      { 200: contact },
    ),
  },
  update: {
    method: 'PATCH',
    path: '/v1/audiences/:audienceId/contacts/:subscriberId',
    summary: 'Update a contact',
    description:
      'Changes the fields given. Names belong to the person and change in every audience. Emits `contact.updated` with the names of what really changed, nothing if nothing did. To set one that is `unsubscribed` to `active` needs a live key.',
    pathParams: contactParams,
    body: updateContact,
    ...outcome(
      {
        operationId: 'updateContact',
        tag: 'Contacts',
        permission: 'contacts:write',
        hasBody: true,
        errors: ['not_found', 'subscriber_unsubscribed'],
      },
      { 200: contact },
    ),
  },
  remove: {
    method: 'DELETE',
    path: '/v1/audiences/:audienceId/contacts/:subscriberId',
    summary: 'Remove a contact',
    description:
      'Takes the person off the list; the subscriber stays. Emits `contact.deleted`. To remove one that is `unsubscribed` needs a live key.',
    pathParams: contactParams,
    ...outcome(
      { operationId: 'removeContact', tag: 'Contacts', permission: 'contacts:write', errors: ['not_found'] },
      { 204: c.noBody() },
    ),
  },
})
