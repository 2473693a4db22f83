import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { numberInText, wellFormedString } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf } from './pagination.ts'
import { outcome } from './route.ts'
import {
  maxMessageAttachments,
  messageAttachmentWithContent,
  storedContentExample,
  storedMessageContent,
  storedMessageExample,
  storedMessageFields,
  storedMessageListQuery,
} from './stored-message.ts'

const c = initContract()

const fields = { id: idSchema('capturedMessage', 'Identifies the message.'), ...storedMessageFields }
const example = { id: exampleId('capturedMessage'), ...storedMessageExample }

const capturedMessage = z
  .object(fields)
  .meta({ id: 'CapturedMessage', description: 'A message that was kept instead of being sent.', example })

const capturedMessageWithContent = z.object({ ...fields, ...storedMessageContent }).meta({
  id: 'CapturedMessageWithContent',
  description: 'A captured message with what is in it.',
  example: { ...example, ...storedContentExample },
})

const searchCharacters = 200

const listQuery = storedMessageListQuery.extend({
  search: wellFormedString(searchCharacters).min(1).optional().meta({
    description:
      'Only those that have this anywhere in the subject, in `from`, in a recipient or in an id. Letter case, invisible characters and the number of spaces do not matter.',
  }),
})

const idParam = z.object({ id: idSchema('capturedMessage', 'The message.') })

export type CapturedMessageListQuery = z.infer<typeof listQuery>
export type CapturedMessage = z.infer<typeof capturedMessage>
export type CapturedMessageWithContent = z.infer<typeof capturedMessageWithContent>

export const capturedMessages = c.router({
  list: {
    method: 'GET',
    path: '/v1/captured-messages',
    summary: 'List captured messages',
    description:
      'Newest first: what `MAIL_TRANSPORT=capture` kept instead of sending, the newest 1,000. An email that is tracked or belongs to an audience has one for each recipient, any other has one for all. A test key sends nothing, so that it finds nothing here. With `search` a page can have fewer messages than `limit`, even none, and not be the last: go on while there is a `nextCursor`.',
    query: listQuery,
    ...outcome(
      {
        operationId: 'listCapturedMessages',
        tag: 'Captured messages',
        permission: 'emails:read',
        errors: ['rule_violation'],
      },
      { 200: pageOf(capturedMessage, 'CapturedMessagePage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/captured-messages/:id',
    summary: 'Get a captured message',
    description: 'One message with its headers, its text, the names of its files, and its source.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'getCapturedMessage',
        tag: 'Captured messages',
        permission: 'emails:read',
        errors: ['not_found'],
      },
      { 200: capturedMessageWithContent },
    ),
  },
  getAttachment: {
    method: 'GET',
    path: '/v1/captured-messages/:id/attachments/:index',
    summary: 'Get an attachment of a captured message',
    description: 'One file of a message with what is in it. Treat it as what it is: a file from outside.',
    pathParams: z.object({
      id: idSchema('capturedMessage', 'The message.'),
      index: numberInText({ min: 0, max: maxMessageAttachments - 1 }).meta({
        description: 'Its place in the `attachments` of the message, from 0.',
        example: 0,
      }),
    }),
    ...outcome(
      {
        operationId: 'getCapturedMessageAttachment',
        tag: 'Captured messages',
        permission: 'emails:read',
        errors: ['not_found'],
      },
      { 200: messageAttachmentWithContent },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/captured-messages/:id',
    summary: 'Delete a captured message',
    description: 'Deletes what was captured. The email that it is of stays.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'deleteCapturedMessage',
        tag: 'Captured messages',
        permission: 'emails:send',
        errors: ['not_found'],
      },
      { 204: c.noBody() },
    ),
  },
  deleteAll: {
    method: 'DELETE',
    path: '/v1/captured-messages',
    summary: 'Delete all captured messages',
    description: 'Deletes everything that was captured in the mode of the key. The emails stay.',
    ...outcome(
      { operationId: 'deleteCapturedMessages', tag: 'Captured messages', permission: 'emails:send' },
      { 204: c.noBody() },
    ),
  },
})
