import { eventTypes } from '../../contract/event-types.ts'

/** Changes that could break a client of the last release, and why they are made all the same. */
export type AcceptedChanges = {
  /** Each as `breakingChanges` says it. */
  changes: readonly string[]
  reason: string
}

/** The same change in the body of one email and of each in a batch. */
function ofEmail(...changes: string[]): string[] {
  return changes.flatMap((change) => [
    `POST /v1/emails, body.${change}`,
    `POST /v1/emails/batch, body.emails[].${change}`,
  ])
}

function ofEvents(place: string): string[] {
  return [...eventTypes.values()].map(({ body }) => {
    const { id } = body.meta() ?? {}
    return `${place}(${id}): is Recorded${id} instead of ${id}`
  })
}

/** Begins anew with every release: what was released was accepted. */
export const acceptedChanges: readonly AcceptedChanges[] = [
  {
    changes: [
      `POST /v1/webhooks, body.events: maxItems is lower (${eventTypes.size})`,
      `PATCH /v1/webhooks/{id}, body.events: maxItems is lower (${eventTypes.size})`,
      ...ofEmail(
        'html: maxLength is lower (10485760)',
        'text: maxLength is lower (10485760)',
        'headers: maxProperties is lower (50)',
        'headers{}: maxLength is lower (998)',
        'headers{name}: maxLength is lower (998)',
        'attachments[].content: maxLength is lower (55924056)',
      ),
    ],
    reason: 'The schema now has bounds that the descriptions had. What is above was refused before.',
  },
  {
    changes: [
      'GET /v1/emails, query from: maxLength is lower (64)',
      'GET /v1/emails, query until: maxLength is lower (64)',
      'GET /v1/events, query since: maxLength is lower (64)',
      'GET /v1/webhooks/{id}/deliveries, query from: maxLength is lower (64)',
      'GET /v1/webhooks/{id}/deliveries, query until: maxLength is lower (64)',
      'POST /v1/webhooks/{id}/recover, body.since: maxLength is lower (64)',
      'PATCH /v1/emails/{id}, body.scheduledAt: maxLength is lower (64)',
      ...ofEmail('scheduledAt: maxLength is lower (64)'),
    ],
    reason: 'No request may hold others up. A time is longer only with more than 38 digits after the second.',
  },
  {
    changes: ['DELETE /v1/suppressions/{address}, path address: maxLength is lower (500)'],
    reason: 'No request may hold others up. No address on the list is longer.',
  },
  {
    changes: ofEmail(...['to', 'cc', 'bcc', 'replyTo'].map((field) => `${field}: is oneOf instead of anyOf`)),
    reason: 'The same values as before. Generators for Rust made an empty type of `anyOf`.',
  },
  {
    changes: [
      'GET /v1/emails, query recipient: pattern is another',
      'GET /v1/suppressions, query address: pattern is another',
      'POST /v1/suppressions, body.address: pattern is another',
      ...ofEmail('from: pattern is another'),
    ],
    reason: 'The pattern says what the server took before; there was none.',
  },
  {
    changes: ofEmail(
      'subject: pattern is another',
      'attachments[].filename: pattern is another',
      'tags[]: pattern is another',
    ),
    reason: 'Lines refuse U+0085, U+2028 and U+2029, which mail readers take for line breaks.',
  },
  {
    changes: ['GET /v1/emails, query tag: pattern is another'],
    reason: 'No tag can have what the pattern refuses now.',
  },
  {
    changes: [...ofEvents('GET /v1/events, 200.data[]'), ...ofEvents('GET /v1/events/{id}, 200')],
    reason:
      'An event that is listed has a `mode`; what is pushed stays as it was, and keeps the name. The fields are the same and one more.',
  },
  {
    changes: ['POST /v1/webhooks/{id}/recover, 202: is StartedRecovery instead of Recovery'],
    reason:
      'A recovery can be got now, as `Recovery`. This answer also has `started`; it has `count`, its only field before.',
  },
  {
    changes: ['GET /v1/event-types, 200.data[].example: is oneOf instead of no union'],
    reason:
      'Was any object. Generators (Go) make types of pushed events only where a path refers to them. The values are the same.',
  },
]
