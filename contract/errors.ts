import { z } from 'zod'

/**
 * Every error the API can answer: code → status → meaning. The server, the published spec and the
 * tests read this one table.
 */
export const errorTable = {
  validation_error: {
    status: 400,
    meaning: 'A field of the path, query or body is missing, unknown or out of range; `details` names each.',
  },
  malformed_json: { status: 400, meaning: 'The body is not JSON.' },
  malformed_request: { status: 400, meaning: 'The bytes sent are not an HTTP request this server can read.' },
  authentication_error: {
    status: 401,
    meaning:
      'The key or session is missing, malformed, unknown, revoked, expired or deleted, must not be used from this address, lacks the permission, or is of test mode where live mode is needed; or email and password do not fit.',
  },
  second_factor_needed: {
    status: 401,
    meaning: 'The password is right, and the user has a second factor: send `code` too.',
  },
  forbidden_origin: {
    status: 403,
    meaning:
      'A session can be used by the dashboard of this service alone: the request lacks `X-Postern-Dashboard: 1`, or comes from a page of another origin.',
  },
  not_found: { status: 404, meaning: 'Nothing is there, or it belongs to another account.' },
  method_not_allowed: {
    status: 405,
    meaning: 'The path exists, but not with this method; `Allow` lists those it has.',
  },
  request_timeout: { status: 408, meaning: 'The request did not arrive in time.' },
  conflict: { status: 409, meaning: 'The request contradicts what is already there.' },
  idempotency_conflict: {
    status: 409,
    meaning: 'The `Idempotency-Key` was used with another request, or its first request is still running.',
  },
  payload_too_large: { status: 413, meaning: 'The body is larger than the limit.' },
  unsupported_media_type: {
    status: 415,
    meaning: 'A body was sent of a type that the operation does not take: most take `application/json` in UTF-8.',
  },
  rule_violation: {
    status: 422,
    meaning:
      'The request has the form the schema asks for, but a value breaks a rule that the schema cannot state, such as a time that must lie ahead; `details` names each field.',
  },
  webhook_disabled: { status: 422, meaning: 'The webhook is disabled; enable it first.' },
  subscriber_unsubscribed: {
    status: 422,
    meaning: 'The person unsubscribed from everything; set the status of the subscriber to `active` first.',
  },
  contact_not_pending: {
    status: 422,
    meaning: 'The contact does not wait to be confirmed: it is active, or the person unsubscribed.',
  },
  confirmation_refused: {
    status: 422,
    meaning:
      'No email that asks to confirm is sent to the contact now: the last one is too recent, there were 5, the address is on the suppression list, or the audience has no `doubleOptIn`; the message says which.',
  },
  domain_not_verified: {
    status: 422,
    meaning: 'The domain of `from` is not a verified domain of the account; add it and publish its DNS records first.',
  },
  public_url_needed: {
    status: 422,
    meaning:
      'The email tracks or goes to an audience, and the service has no public https address for the links in it; its operator sets `PUBLIC_URL`.',
  },
  audience_not_found: { status: 422, meaning: 'The account has no audience with the `audienceId` of the body.' },
  topic_not_found: { status: 422, meaning: 'The account has no topic with an id of the request.' },
  segment_invalid: {
    status: 422,
    meaning:
      'A segment cannot be used: it is not there, or its conditions name a contact property that is not there any more or has another type now; `details` names each. Change its conditions.',
  },
  template_not_found: {
    status: 422,
    meaning: 'The account has no template with this id, or it was never published; publish it first.',
  },
  template_fault: {
    status: 422,
    meaning: 'The template cannot be rendered, or not with these variables; the message names the part and the line.',
  },
  event_not_found: {
    status: 422,
    meaning:
      'The account has no event with the id in `after`, or does not keep it any more; go on with `since` and the time of your last event.',
  },
  last_owner: {
    status: 422,
    meaning: 'The account would be left without an owner; make another member an owner first.',
  },
  account_email_off: {
    status: 422,
    meaning:
      'The service sends no email to its users; its operator sets `ACCOUNT_EMAIL_FROM`, or makes a link on the command line.',
  },
  email_not_scheduled: { status: 422, meaning: 'The email does not wait for a time any more, or never did.' },
  campaign_state: {
    status: 422,
    meaning: 'The state of the campaign does not allow it; the message names the state and what is possible.',
  },
  too_many_campaigns: {
    status: 422,
    meaning:
      'The account has as many campaigns that are scheduled, sending or paused as it may have; wait for one to end, or cancel one.',
  },
  email_not_ended: { status: 422, meaning: 'The email still waits, or is still being sent.' },
  rate_limit_exceeded: { status: 429, meaning: 'Too many requests; `Retry-After` says when to try again.' },
  headers_too_large: { status: 431, meaning: 'The headers of the request are larger than the limit.' },
  internal_error: { status: 500, meaning: 'A fault of the server. Quote the `requestId` when you report it.' },
  unavailable: { status: 503, meaning: 'The server cannot answer just now; try again after `Retry-After`.' },
} as const satisfies Record<string, { status: number; meaning: string }>

export type ErrorCode = keyof typeof errorTable

const errorCodes = Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]]

/** The body of every answer that is not a success, on every path. */
export const errorBody = z
  .object({
    error: z.object({
      code: z.enum(errorCodes).meta({ description: 'What went wrong, for programs. New codes may be added.' }),
      message: z.string().meta({ description: 'What went wrong and what to do, for people.' }),
      details: z
        .array(
          z.object({
            path: z.string().meta({ description: 'Where: `body.events[1]`, `query.limit`, `path.id`.' }),
            message: z.string(),
          }),
        )
        .optional()
        .meta({ description: 'One entry for each fault found.' }),
      requestId: z.string().meta({ description: 'Identifies the request in the logs; also in `X-Request-Id`.' }),
    }),
  })
  .meta({
    id: 'Error',
    description: 'Why a request failed.',
    example: {
      error: {
        code: 'validation_error',
        message: 'The request is not valid: body.events: at least one event type is needed.',
        details: [{ path: 'body.events', message: 'at least one event type is needed' }],
        requestId: 'req_01jqz4x7m8e5v9t2k6r3w0y1ab',
      },
    },
  })

export type ErrorBody = z.infer<typeof errorBody>
