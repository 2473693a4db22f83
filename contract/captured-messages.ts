import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { exampleId, idSchema } from './ids.ts'
import { pageOf } from './pagination.ts'
import { outcome } from './route.ts'
import {
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

export type CapturedMessage = z.infer<typeof capturedMessage>
export type CapturedMessageWithContent = z.infer<typeof capturedMessageWithContent>

export const capturedMessages = c.router({
  list: {
    method: 'GET',
    path: '/v1/captured-messages',
    summary: 'List captured messages',
    description:
      'Newest first: what `MAIL_TRANSPORT=capture` kept instead of sending, the newest 1,000. An email that is tracked or belongs to an audience has one for each recipient, any other has one for all. A test key sends nothing, so that it finds nothing here.',
    query: storedMessageListQuery,
    ...outcome(
      { operationId: 'listCapturedMessages', tag: 'Captured messages', permission: 'emails:read' },
      { 200: pageOf(capturedMessage, 'CapturedMessagePage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/captured-messages/:id',
    summary: 'Get a captured message',
    description: 'One message with its headers, its text, the names of its files, and its source.',
    pathParams: z.object({ id: idSchema('capturedMessage', 'The message.') }),
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
})
