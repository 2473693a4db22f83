import { expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { checkAnswer, type Exchange } from './answer-check.ts'

const requestId = 'req_1'
const webhook = {
  id: exampleId('webhook'),
  mode: 'live',
  url: 'https://example.com/hooks',
  events: ['contact.created'],
  description: null,
  metadata: {},
  status: 'enabled',
  disabledReason: null,
  createdAt: '2026-03-01T09:30:00.000Z',
  updatedAt: '2026-03-01T09:30:00.000Z',
}

const good: Exchange = {
  method: 'GET',
  path: `/v1/webhooks/${webhook.id}?`,
  status: 200,
  headers: {
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': requestId,
    'x-ratelimit-limit': '100',
    'x-ratelimit-remaining': '99',
    'x-ratelimit-reset': '1772357400',
  },
  body: JSON.stringify(webhook),
}

const { 'content-type': _, ...bare } = good.headers

function error(code: string, id = requestId): string {
  return JSON.stringify({ error: { code, message: 'No.', requestId: id } })
}

const noBody: Exchange = { ...good, method: 'DELETE', status: 204, headers: bare, body: '' }
const missing: Exchange = { ...good, status: 404, body: error('not_found') }
const wrongMethod: Exchange = {
  ...missing,
  method: 'PUT',
  status: 405,
  headers: { ...good.headers, allow: 'GET, HEAD, PATCH, DELETE' },
  body: error('method_not_allowed'),
}

test.each([
  ['a body', good, 'getWebhook'],
  ['no body', noBody, 'deleteWebhook'],
  ['an error', missing, 'getWebhook'],
  ['an unknown path', { ...missing, path: '/v2' }, undefined],
  ['a wrong method', wrongMethod, undefined],
  ['a page beside the API', { ...good, path: '/docs/', headers: {}, body: '<html>' }, undefined],
])('an answer in keeping with the spec has no fault: %s', (_name, exchange, operationId) => {
  const { operation, faults } = checkAnswer(exchange)
  expect(faults).toEqual([])
  expect(operation?.id).toBe(operationId)
})

const changed = (change: object) => ({ ...good, body: JSON.stringify({ ...webhook, ...change }) })
const withHeader = (name: string, value: string) => ({ ...good, headers: { ...good.headers, [name]: value } })
test.each<[string, Exchange, string]>([
  ['an undeclared status', { ...good, status: 202 }, 'not declared for getWebhook'],
  ['another content type', withHeader('content-type', 'text/html'), 'content type is "text/html"'],
  ['a body that is not JSON', { ...good, body: '{' }, 'not JSON'],
  ['a field of another type', changed({ url: 1 }), '/url must be string'],
  ['a value out of range', changed({ status: 'paused' }), '/status must be equal to one of'],
  ['a field missing', changed({ url: undefined }), "required property 'url'"],
  ['a field nobody declared', changed({ secretHash: 'x' }), 'secretHash'],
  ['a header missing', { ...good, headers: { ...good.headers, 'x-ratelimit-limit': undefined as never } }, 'missing'],
  ['a header of another type', withHeader('x-ratelimit-reset', 'soon'), 'x-ratelimit-reset'],
  ['a header nobody declared', withHeader('retry-after', '1'), 'sent but not declared'],
  ['a body where none is declared', { ...noBody, body: '{}' }, 'none is declared'],
  ['an error of another shape', { ...missing, body: '{"message":"No."}' }, "required property 'error'"],
  ['an error with the code of another status', { ...missing, body: error('conflict') }, 'code conflict'],
  ['an error with another request id', { ...missing, body: error('not_found', 'req_2') }, 'request id'],
  ['a success of no operation', { ...good, path: '/v1/nothing' }, 'no such operation'],
  ['an unknown path without an error body', { ...missing, path: '/v2', body: 'No' }, 'not JSON'],
  ['a wrong method without Allow', { ...wrongMethod, headers: good.headers }, 'lacks DELETE, GET, PATCH'],
])('an answer that breaks the spec is found out: %s', (_name, exchange, fault) => {
  expect(checkAnswer(exchange).faults.join('\n')).toContain(fault)
})
