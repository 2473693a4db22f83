import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { givenProperties, shownProperties } from './contact-properties.ts'
import { emailAddress, list, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'
import { peopleSearch, personName, subscriptionStatus } from './subscribers.ts'

const c = initContract()

export const contactConflict = z.enum(['update', 'skip']).meta({
  id: 'ContactConflict',
  description:
    'What happens to people who are there already. `skip`, the default: they stay as they are, and are put on the list. `update`: their names and properties become those given; what is not given stays.',
})

export const contact = z
  .object({
    audienceId: idSchema('audience', 'The list.'),
    subscriberId: idSchema('subscriber', 'The person.'),
    email: emailAddress,
    firstName: z.string().nullable(),
    lastName: z.string().nullable(),
    status: subscriptionStatus,
    properties: shownProperties,
    confirmationSentAt: timestamp.nullable().meta({
      description: 'When the last email was made that asks the person to confirm. Null: there is none.',
    }),
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
      properties: { plan: 'pro' },
      confirmationSentAt: null,
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

/** Contacts of a batch. */
const maxContactBatch = 1_000

export const addContact = z
  .strictObject({
    email: emailAddress,
    firstName: personName.nullable().optional(),
    lastName: personName.nullable().optional(),
    properties: givenProperties.optional(),
  })
  .meta({
    id: 'AddContact',
    description: 'Who to add. Names and properties are taken for a person who is new; those of a known person stay.',
    example: { email: 'ada@example.com', firstName: 'Ada' },
  })

/** The contacts of a batch are judged one by one, so that each can be refused by itself. */
const batch = z
  .strictObject({
    contacts: list(z.unknown(), { min: 1, max: maxContactBatch }).meta({
      override: { items: { $ref: '#/components/schemas/AddContact' } },
    }),
    conflict: contactConflict.optional(),
    status: subscriptionStatus.optional().meta({
      description:
        'Of the new contacts. Default: `active`, or `pending` in an audience with `doubleOptIn`, where `active` says that they confirmed elsewhere, and needs a live key. With `unsubscribed` and `update` those who are on the list are unsubscribed from it too. A person who unsubscribed stays so, whatever it is.',
    }),
  })
  .meta({
    id: 'AddContactBatch',
    description: 'Who to add.',
    example: { contacts: [{ email: 'ada@example.com', firstName: 'Ada' }], conflict: 'update' },
  })

const batchAnswer = z
  .object({
    data: z
      .array(
        z.object({
          index: z.int().min(0),
          result: z.enum(['created', 'updated', 'unchanged']).meta({
            description:
              '`created`: is on the list now, and was not. `updated`: was on it, and something changed. `unchanged`: was on it, and nothing changed.',
          }),
          subscriberId: idSchema('subscriber', 'The person.'),
        }),
      )
      .meta({ description: 'The contacts that are on the list, by their index in the request.' }),
    errors: z
      .array(
        z.object({
          index: z.int().min(0),
          code: z.string(),
          message: z.string(),
          details: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
        }),
      )
      .meta({ description: 'Those that were refused, and why.' }),
  })
  .meta({
    id: 'AddedContactBatch',
    description: 'What became of each contact of a batch.',
    example: { data: [{ index: 0, result: 'created', subscriberId: exampleId('subscriber') }], errors: [] },
  })

const updateContact = z
  .strictObject({
    firstName: personName.nullable().optional(),
    lastName: personName.nullable().optional(),
    status: subscriptionStatus.optional(),
    properties: givenProperties.optional(),
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
export type AddedContactBatch = z.infer<typeof batchAnswer>
export type ContactConflict = z.infer<typeof contactConflict>
export type ContactListQuery = z.infer<typeof listQuery>
export type UpdateContact = z.infer<typeof updateContact>

export const contacts = c.router({
  add: {
    method: 'POST',
    path: '/v1/audiences/:audienceId/contacts',
    summary: 'Add a contact',
    description:
      'Puts a person on the list, and makes the subscriber if the address is new. Emits `subscriber.added` (if new) and `contact.created`. A person who unsubscribed from everything is added as `unsubscribed`. In an audience with `doubleOptIn` the contact is `pending`, and gets an email to confirm in the same transaction; an address on the suppression list gets none. 409 when the person is on the list already.',
    pathParams: audienceParam,
    body: addContact,
    ...outcome(
      {
        operationId: 'addContact',
        tag: 'Contacts',
        permission: 'contacts:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['not_found', 'conflict', 'rule_violation', 'domain_not_verified', 'public_url_needed'],
      },
      { 201: contact },
    ),
  },
  addBatch: {
    method: 'POST',
    path: '/v1/audiences/:audienceId/contacts/batch',
    summary: 'Add several contacts',
    description: `Up to ${maxContactBatch}, in one transaction. Each is judged by itself: the answer says which are on the list now, and what is wrong with each of the others. Of several with one address, a later one wins with \`update\`. Emits \`subscriber.added\` for each new person, \`contact.created\` for each new contact, and \`contact.updated\` for each contact of a person who really changed.`,
    pathParams: audienceParam,
    body: batch,
    ...outcome(
      {
        operationId: 'addContactBatch',
        tag: 'Contacts',
        permission: 'contacts:write',
        hasBody: true,
        // As many values as a batch of emails.
        takesAttachments: true,
        idempotency: 'with-work',
        errors: ['not_found', 'domain_not_verified', 'public_url_needed'],
      },
      { 200: batchAnswer },
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
  exportCsv: {
    method: 'GET',
    path: '/v1/audiences/:audienceId/contacts/export',
    summary: 'Export the contacts of an audience',
    description:
      'CSV in UTF-8, oldest subscribers first: `email`, `first_name`, `last_name`, `status`, `created_at`, then the declared properties by key. An import reads it as it is, and puts those who are `unsubscribed` on the suppression list. Contacts that come or go meanwhile may be in it or not. A cell that a spreadsheet could take for a formula begins with an apostrophe.',
    pathParams: audienceParam,
    ...outcome(
      { operationId: 'exportContacts', tag: 'Contacts', permission: 'contacts:read', errors: ['not_found'] },
      {
        200: c.otherResponse({
          contentType: 'text/csv',
          body: z.string().meta({
            description: 'CSV with a head.',
            example:
              'email,first_name,last_name,status,created_at,plan\r\nada@example.com,Ada,Lovelace,active,2026-03-01T09:30:00.000Z,pro\r\n',
          }),
        }),
      },
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
      'Changes the fields given. Names and properties belong to the person and change in every audience. Emits `contact.updated` with the names of what really changed, nothing if nothing did. To set one that is `unsubscribed` or `pending` to `active` needs a live key; `pending` cannot be set.',
    pathParams: contactParams,
    body: updateContact,
    ...outcome(
      {
        operationId: 'updateContact',
        tag: 'Contacts',
        permission: 'contacts:write',
        hasBody: true,
        errors: ['not_found', 'subscriber_unsubscribed', 'rule_violation'],
      },
      { 200: contact },
    ),
  },
  sendConfirmation: {
    method: 'POST',
    path: '/v1/audiences/:audienceId/contacts/:subscriberId/confirmation',
    summary: 'Ask a contact to confirm again',
    description:
      'Sends another email with a link to confirm, which holds for 7 days, to a contact that is `pending`. At most one in 10 minutes, and 5 in all.',
    pathParams: contactParams,
    body: z.strictObject({}).optional(),
    ...outcome(
      {
        operationId: 'sendContactConfirmation',
        tag: 'Contacts',
        permission: 'contacts:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: [
          'not_found',
          'contact_not_pending',
          'confirmation_refused',
          'domain_not_verified',
          'public_url_needed',
        ],
      },
      { 202: contact },
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
