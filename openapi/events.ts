import type { PathItemObject } from 'openapi3-ts/oas31'
import type { EventTypeDefinition } from '../contract/event-types.ts'
import { pascalCase } from './names.ts'
import { deliveryHeaders } from './parameters.ts'
import type { SchemaWriter } from './schemas.ts'

/** The tag of the requests this service makes to the client's URL. */
export const pushedTag = {
  name: 'Pushed events',
  description: 'What a webhook receives: requests of this service to your URL.',
}

/** What a receiver gets when an event of this type happens, and what its answers mean. */
export function webhookOf(type: EventTypeDefinition, schemas: SchemaWriter): PathItemObject {
  return {
    post: {
      operationId: `on${pascalCase(type.name)}`,
      tags: [pushedTag.name],
      summary: type.meaning,
      description: `Sent to every enabled webhook that lists \`${type.name}\` in its \`events\`. Verify the signature over the raw body first; an event may come more than once, with the same \`id\`.`,
      // The receiver knows the sender by the signature; there is no key.
      security: [],
      parameters: deliveryHeaders,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schemas.output(type.body, `webhook ${type.name}`) } },
      },
      responses: {
        '2XX': { description: 'Accepted. The answer must arrive within 30 seconds; its body is kept in the log.' },
        '410': { description: 'Gone: the webhook is disabled at once and its pending deliveries are canceled.' },
        default: {
          description:
            'Failed, redirects included: tried again after 1 minute, 5 minutes, 30 minutes, 2 hours and 24 hours. `Retry-After` on 429 or 503 can lengthen the wait, up to 24 hours.',
        },
      },
    },
  }
}
