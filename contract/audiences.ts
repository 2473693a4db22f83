import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { line, mailbox, text, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

const name = text(200).min(1).meta({ description: 'What people call it.', example: 'Newsletter' })
const description = text(500).nullable().optional().meta({ description: 'What it is for.' })

/** Characters of what a confirmation email says. */
const doubleOptInText = 1_000

const doubleOptIn = z
  .strictObject({
    from: mailbox.meta({ description: 'Who asks. With a live key, at a verified domain of the account.' }),
    subject: line(200).min(1).nullable().optional().meta({
      description: 'Of the email. Default: `Please confirm your subscription`.',
    }),
    text: text(doubleOptInText).min(1).nullable().optional().meta({
      description: 'What the email says before its button, as plain text. Default: only the usual sentence.',
    }),
  })
  .meta({
    id: 'DoubleOptIn',
    description:
      'Whether people who are added confirm first. Null: they do not. Otherwise a contact is `pending` until the person presses the button behind the link of an email, which is sent when the contact is added. The link holds for 7 days. A contact that is still pending 30 days after the last email is deleted, with the event `contact.deleted`.',
    example: { from: 'Acme <news@example.com>', subject: 'Please confirm your subscription', text: null },
  })

const shownDoubleOptIn = z.object({ from: mailbox, subject: z.string().nullable(), text: z.string().nullable() }).meta({
  id: 'AudienceDoubleOptIn',
  description: 'How people who are added are asked to confirm. Null: they are not.',
  example: { from: 'Acme <news@example.com>', subject: null, text: null },
})

const audience = z
  .object({
    id: idSchema('audience', 'Identifies the audience.'),
    name: z.string(),
    description: z.string().nullable(),
    doubleOptIn: shownDoubleOptIn.nullable(),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({
    id: 'Audience',
    description: 'A named list of people.',
    example: {
      id: exampleId('audience'),
      name: 'Newsletter',
      description: null,
      doubleOptIn: null,
      createdAt: '2026-03-01T09:30:00.000Z',
      updatedAt: '2026-03-01T09:30:00.000Z',
    },
  })

const createAudience = z
  .strictObject({ name, description, doubleOptIn: doubleOptIn.nullable().optional() })
  .meta({ id: 'CreateAudience', description: 'The list to add.', example: { name: 'Newsletter' } })

const updateAudience = z
  .strictObject({ name: name.optional(), description, doubleOptIn: doubleOptIn.nullable().optional() })
  .meta({ id: 'UpdateAudience', description: 'The fields to change.', example: { name: 'Monthly news' } })

const idParam = z.object({ id: idSchema('audience', 'The audience.') })

export type Audience = z.infer<typeof audience>
export type CreateAudience = z.infer<typeof createAudience>
export type UpdateAudience = z.infer<typeof updateAudience>

export const audiences = c.router({
  create: {
    method: 'POST',
    path: '/v1/audiences',
    summary: 'Create an audience',
    description:
      'Adds an empty list. With `doubleOptIn`, people who are added get an email to confirm that they want emails.',
    body: createAudience,
    ...outcome(
      {
        operationId: 'createAudience',
        tag: 'Audiences',
        permission: 'audiences:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['rule_violation', 'domain_not_verified', 'public_url_needed'],
      },
      { 201: audience },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/audiences',
    summary: 'List audiences',
    description: 'Newest first.',
    query: z.strictObject(pageQuery),
    ...outcome(
      { operationId: 'listAudiences', tag: 'Audiences', permission: 'audiences:read' },
      { 200: pageOf(audience, 'AudiencePage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/audiences/:id',
    summary: 'Get an audience',
    description: 'One audience.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'getAudience', tag: 'Audiences', permission: 'audiences:read', errors: ['not_found'] },
      { 200: audience },
    ),
  },
  update: {
    method: 'PATCH',
    path: '/v1/audiences/:id',
    summary: 'Update an audience',
    description:
      'Changes the fields given. `doubleOptIn` is replaced as a whole, which needs a live key; contacts stay as they are.',
    pathParams: idParam,
    body: updateAudience,
    ...outcome(
      {
        operationId: 'updateAudience',
        tag: 'Audiences',
        permission: 'audiences:write',
        hasBody: true,
        errors: ['not_found', 'rule_violation', 'domain_not_verified', 'public_url_needed'],
      },
      { 200: audience },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/audiences/:id',
    summary: 'Delete an audience',
    description:
      'The people stay. Emits `contact.deleted` for each contact. Where a contact is `unsubscribed`, that needs a live key. 409 while campaigns to it are scheduled, sending or paused: cancel them first. Drafts stay, and can be sent to another audience.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'deleteAudience',
        tag: 'Audiences',
        permission: 'audiences:write',
        errors: ['not_found', 'conflict'],
      },
      { 204: c.noBody() },
    ),
  },
})
