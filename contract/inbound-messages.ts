import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { exampleId, idSchema } from './ids.ts'
import { keptInboundBytes } from './inbound-limits.ts'
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

const cut = `Of a longer message, the first ${keptInboundBytes.toLocaleString('en')} bytes.`

const fields = {
  id: idSchema('inboundMessage', 'Identifies the message.'),
  ...storedMessageFields,
  size: z
    .int()
    .min(0)
    .meta({ description: `Bytes that are kept. ${cut}` }),
  reason: z.string().meta({ description: 'Why it was not understood.' }),
}
const example = {
  id: exampleId('inboundMessage'),
  ...storedMessageExample,
  mailFrom: '',
  recipients: [storedMessageExample.mailFrom],
  from: 'postmaster@example.org',
  reason: 'It is neither a delivery status notification nor a feedback report.',
}

const source = z.string().meta({ description: `The message, byte for byte, in base64. ${cut}` })

const inboundMessage = z.object(fields).meta({
  id: 'InboundMessage',
  description: 'A message that came back and was not understood.',
  example,
})

const inboundMessageWithContent = z.object({ ...fields, ...storedMessageContent, source }).meta({
  id: 'InboundMessageWithContent',
  description: 'An inbound message with what is in it.',
  example: { ...example, ...storedContentExample },
})

export type InboundMessage = z.infer<typeof inboundMessage>
export type InboundMessageWithContent = z.infer<typeof inboundMessageWithContent>

export const inboundMessages = c.router({
  list: {
    method: 'GET',
    path: '/v1/inbound-messages',
    summary: 'List inbound messages',
    description:
      'Newest first: what came back to the return path of an email and was not understood, the newest 1,000 that are not older than the retention. Notifications that were understood are in the timeline of their email.',
    query: storedMessageListQuery,
    ...outcome(
      { operationId: 'listInboundMessages', tag: 'Inbound messages', permission: 'emails:read' },
      { 200: pageOf(inboundMessage, 'InboundMessagePage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/inbound-messages/:id',
    summary: 'Get an inbound message',
    description: 'One message with its headers, its text, the names of its files, and its source.',
    pathParams: z.object({ id: idSchema('inboundMessage', 'The message.') }),
    ...outcome(
      { operationId: 'getInboundMessage', tag: 'Inbound messages', permission: 'emails:read', errors: ['not_found'] },
      { 200: inboundMessageWithContent },
    ),
  },
})
