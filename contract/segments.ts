import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { contact } from './contacts.ts'
import { text, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'
import { conditions, exampleConditions } from './segment-conditions.ts'

const c = initContract()

const name = text(200).min(1).meta({ description: 'What people call it.', example: 'Readers' })

const segment = z
  .object({
    id: idSchema('segment', 'Identifies the segment.'),
    audienceId: idSchema('audience', 'The list whose people it chooses from.'),
    name: z.string(),
    conditions,
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({
    id: 'Segment',
    description: 'The people of an audience for whom conditions hold. Who they are is looked up each time.',
    example: {
      id: exampleId('segment'),
      audienceId: exampleId('audience'),
      name: 'Readers',
      conditions: exampleConditions,
      createdAt: '2026-03-01T09:30:00.000Z',
      updatedAt: '2026-03-01T09:30:00.000Z',
    },
  })

const audienceId = idSchema('audience', 'The list to choose people from.')

const createSegment = z.strictObject({ audienceId, name, conditions }).meta({
  id: 'CreateSegment',
  description: 'The segment to add.',
  example: { audienceId: exampleId('audience'), name: 'Readers', conditions: exampleConditions },
})

const updateSegment = z
  .strictObject({ name: name.optional(), conditions: conditions.optional() })
  .meta({ id: 'UpdateSegment', description: 'The fields to change.', example: { name: 'Regular readers' } })

const previewSegment = z.strictObject({ audienceId, conditions }).meta({
  id: 'PreviewSegment',
  description: 'Conditions to try.',
  example: { audienceId: exampleId('audience'), conditions: exampleConditions },
})

const countFields = {
  count: z.int().min(0).meta({ description: 'How many contacts match.' }),
  isEstimate: z.boolean().meta({
    description:
      'Whether `count` is an estimate from a sample, because the audience is large or counting took too long. It is then the same each time until something changes.',
  }),
}

const segmentCount = z.object(countFields).meta({
  id: 'SegmentCount',
  description: 'How many contacts match.',
  example: { count: 1250, isEstimate: false },
})

const segmentPreview = z
  .object({
    ...countFields,
    contacts: z.array(contact).meta({
      description:
        'Some of them: the first 10 of those that match, newest subscribers first, as far as they are among the newest 10,000 contacts.',
    }),
  })
  .meta({
    id: 'SegmentPreview',
    description: 'How many contacts match, and some of them.',
    example: { count: 1250, isEstimate: false, contacts: [contact.meta()?.example] },
  })

const idParam = z.object({ id: idSchema('segment', 'The segment.') })

const listQuery = z.strictObject({
  ...pageQuery,
  audienceId: idSchema('audience', 'Only segments of this audience.').optional(),
})

export type Segment = z.infer<typeof segment>
export type CreateSegment = z.infer<typeof createSegment>
export type UpdateSegment = z.infer<typeof updateSegment>
export type PreviewSegment = z.infer<typeof previewSegment>
export type SegmentCount = z.infer<typeof segmentCount>
export type SegmentPreview = z.infer<typeof segmentPreview>
export type SegmentListQuery = z.infer<typeof listQuery>

export const segments = c.router({
  create: {
    method: 'POST',
    path: '/v1/segments',
    summary: 'Create a segment',
    description:
      'Stores conditions on the people of an audience. Nothing is looked up yet. 422 `rule_violation` names each condition with a property that the account does not have, or with an operator or a value that its type does not take.',
    body: createSegment,
    ...outcome(
      {
        operationId: 'createSegment',
        tag: 'Segments',
        permission: 'segments:write',
        hasBody: true,
        idempotency: 'with-work',
        errors: ['rule_violation', 'audience_not_found'],
      },
      { 201: segment },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/segments',
    summary: 'List segments',
    description: 'Newest first.',
    query: listQuery,
    ...outcome(
      { operationId: 'listSegments', tag: 'Segments', permission: 'segments:read' },
      { 200: pageOf(segment, 'SegmentPage') },
    ),
  },
  preview: {
    method: 'POST',
    path: '/v1/segments/preview',
    summary: 'Preview a segment',
    description: 'How many people of an audience match conditions that are not stored, and the first of them.',
    body: previewSegment,
    ...outcome(
      {
        operationId: 'previewSegment',
        tag: 'Segments',
        permission: 'contacts:read',
        hasBody: true,
        // A transaction would end with the time limit of the count.
        idempotency: 'after-work',
        errors: ['rule_violation', 'audience_not_found'],
      },
      { 200: segmentPreview },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/segments/:id',
    summary: 'Get a segment',
    description: 'One segment.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'getSegment', tag: 'Segments', permission: 'segments:read', errors: ['not_found'] },
      { 200: segment },
    ),
  },
  count: {
    method: 'GET',
    path: '/v1/segments/:id/count',
    summary: 'Count a segment',
    description:
      'How many contacts match now. Exact in an audience of up to about 200,000 contacts, and for conditions on `status` alone in any, if counting takes less than 1.5 seconds; otherwise an estimate from a sample of 10,000 contacts at most. The counts of an account are made one after the other.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'countSegment',
        tag: 'Segments',
        permission: 'segments:read',
        errors: ['not_found', 'segment_invalid'],
      },
      { 200: segmentCount },
    ),
  },
  contacts: {
    method: 'GET',
    path: '/v1/segments/:id/contacts',
    summary: 'List the contacts of a segment',
    description:
      'Those who match now, newest subscribers first. A page can have fewer contacts than `limit`, even none, and not be the last: go on while there is a `nextCursor`.',
    pathParams: idParam,
    query: z.strictObject(pageQuery),
    ...outcome(
      {
        operationId: 'listSegmentContacts',
        tag: 'Segments',
        permission: 'contacts:read',
        errors: ['not_found', 'segment_invalid'],
      },
      { 200: pageOf(contact, 'SegmentContactPage') },
    ),
  },
  exportCsv: {
    method: 'GET',
    path: '/v1/segments/:id/contacts/export',
    summary: 'Export the contacts of a segment',
    description:
      'Those who match now, as the export of an audience writes them. Contacts that come, go or change meanwhile may be in it or not.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'exportSegmentContacts',
        tag: 'Segments',
        permission: 'contacts:read',
        errors: ['not_found', 'segment_invalid'],
      },
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
  update: {
    method: 'PATCH',
    path: '/v1/segments/:id',
    summary: 'Update a segment',
    description: 'Changes the fields given. The audience stays.',
    pathParams: idParam,
    body: updateSegment,
    ...outcome(
      {
        operationId: 'updateSegment',
        tag: 'Segments',
        permission: 'segments:write',
        hasBody: true,
        errors: ['not_found', 'rule_violation'],
      },
      { 200: segment },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/segments/:id',
    summary: 'Delete a segment',
    description:
      'The people stay. The segments of an audience are deleted with it. 409 while campaigns to it are scheduled, sending or paused: cancel them first.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'deleteSegment',
        tag: 'Segments',
        permission: 'segments:write',
        errors: ['not_found', 'conflict'],
      },
      { 204: c.noBody() },
    ),
  },
})
