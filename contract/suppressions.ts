import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { boundedString, mailbox, recipientAddress, searchText, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

export const suppressionReason = z.enum(['hard_bounce', 'complaint', 'unsubscribe', 'manual']).meta({
  id: 'SuppressionReason',
  description:
    'Why an address is not written to: it does not exist, the person complained, unsubscribed (then only emails to an audience are held back), or it was put on the list over the API.',
})

const suppressionSource = z.enum(['api', 'smtp_answer', 'notification', 'feedback_report', 'unsubscribe_link']).meta({
  id: 'SuppressionSource',
  description:
    'Where it was learned: it was put on the list over the API; a mail server refused the address when an email was sent; a notification said so that came back later; a mailbox provider reported the complaint; or somebody followed the link to unsubscribe.',
})

const suppression = z
  .object({
    id: idSchema('suppression', 'Identifies the entry.'),
    address: recipientAddress,
    reason: suppressionReason,
    source: suppressionSource,
    emailId: idSchema('email', 'The email it came from; null: it was put there over the API.').nullable(),
    unsubscribedAt: timestamp.nullable().meta({
      description:
        'When its owner unsubscribed; null: never. That stays where the address comes onto the list for another reason too.',
    }),
    createdAt: timestamp,
  })
  .meta({
    id: 'Suppression',
    description: 'An address that is not written to.',
    example: {
      id: exampleId('suppression'),
      address: 'ada@example.com',
      reason: 'hard_bounce',
      source: 'smtp_answer',
      emailId: exampleId('email'),
      unsubscribedAt: null,
      createdAt: '2026-03-01T09:30:00.000Z',
    },
  })

const createSuppression = z.strictObject({ address: mailbox.meta({ description: 'The address.' }) }).meta({
  id: 'CreateSuppression',
  description: 'The address that shall not be written to.',
  example: { address: 'ada@example.com' },
})

const listQuery = z.strictObject({
  ...pageQuery,
  reason: suppressionReason.optional(),
  address: mailbox.optional().meta({ description: 'Only the entry of this address.' }),
  search: searchText(
    'Only those whose address begins with this, in any letter case. Of more than 500 such addresses, the first 500 by alphabet are found.',
  ).optional(),
})

const addressParam = z.object({
  address: boundedString(500).meta({ description: 'The address, in any letter case.', example: 'ada@example.com' }),
})

export type Suppression = z.infer<typeof suppression>
export type SuppressionSource = z.infer<typeof suppressionSource>
export type SuppressionReason = z.infer<typeof suppressionReason>
export type CreateSuppression = z.infer<typeof createSuppression>
export type SuppressionListQuery = z.infer<typeof listQuery>

export const suppressions = c.router({
  create: {
    method: 'POST',
    path: '/v1/suppressions',
    summary: 'Suppress an address',
    description:
      'Has no email be sent to an address any more. One that is there as `unsubscribe` becomes `manual`, and is `unsubscribe` again when that is deleted; 409 when it is there for another reason.',
    body: createSuppression,
    ...outcome(
      {
        operationId: 'createSuppression',
        tag: 'Suppressions',
        permission: 'suppressions:write',
        liveKeyOnly: true,
        hasBody: true,
        idempotency: 'with-work',
        errors: ['conflict', 'rule_violation'],
      },
      { 201: suppression },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/suppressions',
    summary: 'List suppressed addresses',
    description: 'Newest first.',
    query: listQuery,
    ...outcome(
      {
        operationId: 'listSuppressions',
        tag: 'Suppressions',
        permission: 'suppressions:read',
        errors: ['rule_violation'],
        liveKeyOnly: true,
      },
      { 200: pageOf(suppression, 'SuppressionPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/suppressions/:address',
    summary: 'Get a suppressed address',
    description: 'The entry of one address.',
    pathParams: addressParam,
    ...outcome(
      {
        operationId: 'getSuppression',
        tag: 'Suppressions',
        permission: 'suppressions:read',
        liveKeyOnly: true,
        errors: ['not_found'],
      },
      { 200: suppression },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/suppressions/:address',
    summary: 'Take an address off the list',
    description:
      'Email is sent to it again. If its owner also unsubscribed, the entry stays with the reason `unsubscribe`: delete it again to allow emails to audiences.',
    pathParams: addressParam,
    ...outcome(
      {
        operationId: 'deleteSuppression',
        tag: 'Suppressions',
        permission: 'suppressions:write',
        liveKeyOnly: true,
        errors: ['not_found'],
      },
      { 204: c.noBody() },
    ),
  },
})
