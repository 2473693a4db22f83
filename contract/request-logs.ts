import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { errorBody, errorTable } from './errors.ts'
import { boundedString, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { mode } from './mode.ts'
import { pageOf, pageQuery, timeFilters } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

/** How long requests are kept. Days. */
export const requestLogDays = 7

/** Bytes of requests that are kept of an account in one mode and one day. */
export const requestLogBytesPerDay = 256 * 2 ** 20

const logFields = {
  id: idSchema('request', 'Identifies the request: `X-Request-Id` of its answer, and `requestId` of its error.'),
  at: timestamp.meta({ description: 'When it came.' }),
  mode,
  method: z.string().meta({ description: 'The method.', example: 'POST' }),
  route: z.string().meta({
    description: 'The path of the operation, with its parameters in braces.',
    example: '/v1/emails/{id}',
  }),
  path: z.string().meta({
    description:
      'The path with its query, of which identifiers, times, numbers, addresses and words of this document are kept. `…` stands for other values; parameters that are not known are left out.',
    example: '/v1/emails?status=sent&search=…',
  }),
  status: z
    .int()
    .nullable()
    .meta({ description: 'The status of the answer; null: the client disconnected before it had the whole answer.' }),
  durationMs: z.number().min(0).meta({ description: 'Milliseconds from its arrival to the end of its answer.' }),
  key: z.object({
    id: idSchema('apiKey', 'The key.'),
    name: z.string().meta({ description: 'The name of the key at that time.' }),
  }),
  errorCode: z.string().nullable().meta({ description: 'The code of the error; null: it succeeded.' }),
  ipAddress: z.string().nullable().meta({ description: 'The address of the client; null: it is not known.' }),
}

const logExample = {
  id: exampleId('request'),
  at: '2026-03-01T09:30:00.000Z',
  mode: 'live',
  method: 'POST',
  route: '/v1/webhooks',
  path: '/v1/webhooks',
  status: 400,
  durationMs: 1.8,
  key: { id: exampleId('apiKey'), name: 'Web shop' },
  errorCode: 'validation_error',
  ipAddress: '203.0.113.7',
}

const requestLog = z
  .object(logFields)
  .meta({ id: 'RequestLog', description: 'A request to the API.', example: logExample })

const requestLogDetails = z
  .object({
    ...logFields,
    requestBody: z.unknown().meta({
      description:
        'The body of a request that failed, without secrets and the contents of emails: identifiers, times, email addresses, names of domains, origins of URLs, true, false and words of this document. Of another value it has type and size, as in `[text, 34 characters]`; fields that the operation does not know are counted under `…`. Long lists are cut. Null: the request succeeded, had no body, or the body was not read.',
    }),
    error: z
      .object({
        code: errorBody.shape.error.shape.code,
        message: z.string().meta({ description: 'What the code means.' }),
        details: z
          .array(
            z.object({
              path: z.string().meta({
                description:
                  'Where: `body.events[1]`, `query.limit`, `path.id`. `…` stands for names that are not known.',
              }),
              message: z
                .string()
                .nullable()
                .meta({ description: 'The fault; null: the message could quote what was sent.' }),
            }),
          )
          .meta({ description: 'Up to 10 of the faults that the answer named.' }),
      })
      .nullable()
      .meta({
        description:
          'Why the request failed; null: it succeeded. The message of the answer is not kept, because it may quote the request.',
      }),
  })
  .meta({
    id: 'RequestLogDetails',
    description: 'A request to the API, with what it sent and was answered if it failed.',
    example: {
      ...logExample,
      requestBody: { url: 'https://example.com/…', events: [], description: '[text, 15 characters]' },
      error: {
        code: 'validation_error',
        message: errorTable.validation_error.meaning,
        details: [{ path: 'body.events', message: null }],
      },
    },
  })

const listQuery = z.strictObject({
  ...pageQuery,
  status: boundedString(7)
    .regex(/^(?:[45](?:xx|[0-9][0-9])|aborted|failed)$/, 'must be a status such as 404, or 4xx, 5xx, aborted or failed')
    .optional()
    .meta({
      description:
        'Only failures: with this status (`404`), of this class (`4xx` or `5xx`), `aborted` (the client disconnected before it had the whole answer), or `failed` (all of these).',
      example: '4xx',
    }),
  key: idSchema('apiKey', 'Only those with this key.').optional(),
  ...timeFilters,
})

const idParam = z.object({ id: idSchema('request', 'The request.') })

export type RequestLog = z.infer<typeof requestLog>
export type RequestLogDetails = z.infer<typeof requestLogDetails>
export type RequestLogQuery = z.infer<typeof listQuery>

const reading = { tag: 'Request logs', permission: 'request_logs:read' } as const

export const requestLogs = c.router({
  list: {
    method: 'GET',
    path: '/v1/request-logs',
    summary: 'List requests',
    description: `Newest first: requests of the keys of the account in the mode of the caller. A request is listed about a second after its answer. Requests of users of the dashboard are not listed. Kept for ${requestLogDays} days, and up to ${requestLogBytesPerDay / 2 ** 20} MiB of a day; later requests of that day are not kept. Of requests that are refused with 401 or 429, up to 20 a second are kept, and none once a quarter of the day is used. A process that is killed loses those of its last second.`,
    query: listQuery,
    ...outcome({ ...reading, operationId: 'listRequestLogs' }, { 200: pageOf(requestLog, 'RequestLogPage') }),
  },
  get: {
    method: 'GET',
    path: '/v1/request-logs/:id',
    summary: 'Get a request',
    description: 'One request. Where it failed, with its error, and with what is kept of its body.',
    pathParams: idParam,
    ...outcome({ ...reading, operationId: 'getRequestLog', errors: ['not_found'] }, { 200: requestLogDetails }),
  },
})
