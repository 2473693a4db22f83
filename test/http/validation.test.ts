import { once } from 'node:events'
import { initContract } from '@ts-rest/core'
import { createExpressEndpoints } from '@ts-rest/express'
import express from 'express'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { contract } from '../../contract/index.ts'
import { answerErrors } from '../../server/http/errors.ts'
import { readPart, validatedAtOnce } from '../../server/http/validation.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { DomainError, type ErrorDetail } from '../../server/shared/errors.ts'

const ada = 'ada@example.com'

/** Returns the error details for a body with the fields. */
function detailsOf(body: z.ZodType, fields: unknown): readonly ErrorDetail[] {
  const read = readPart(body, fields, [])
  if (!(read instanceof DomainError)) throw new Error('it was taken')
  return read.details ?? []
}

/** Returns the error details for an email with the fields, as text. */
function toldOf(fields: Record<string, unknown>): string[] {
  const email = { from: ada, to: ada, subject: 'Hello', text: 'Hello', ...fields }
  return detailsOf(contract.emails.send.body, email).map(({ path, message }) => `${path}: ${message}`)
}

test.each([
  ['51 in to', { to: Array(51).fill(ada) }, 'body.to: must be at most 50 addresses'],
  ['51 in cc', { cc: Array(51).fill(ada) }, 'body.cc: must be at most 50 addresses'],
  ['51 in bcc', { bcc: Array(51).fill(ada) }, 'body.bcc: must be at most 50 addresses'],
  ['11 in replyTo', { replyTo: Array(11).fill(ada) }, 'body.replyTo: must be at most 10 addresses'],
  ['none', { to: [] }, 'body.to: must have at least 1 item'],
  ['an empty one', { to: '' }, 'body.to: must have at least 1 character'],
  ['an empty one in a list', { to: [ada, ''] }, 'body.to[1]: must have at least 1 character'],
  ['a number in a list', { to: [ada, 1] }, 'body.to[1]: must be a string, not a number'],
  ['a number', { to: 1 }, 'body.to: must be an address or a list of addresses'],
  ['nothing', { to: undefined }, 'body.to: is required'],
])('addresses of an email: %s', (_, fields, told) => {
  expect(toldOf(fields)).toEqual([told])
})

test.each<[z.ZodType, unknown, string]>([
  [z.string(), undefined, 'is required'],
  [z.string(), 5, 'must be a string, not a number'],
  [z.string(), null, 'must be a string, not null'],
  [z.boolean(), 'yes', 'must be true or false, not a string'],
  [z.array(z.string()), {}, 'must be a list, not an object'],
  [z.record(z.string(), z.string()), true, 'must be an object, not a boolean'],
  [z.int(), 'x', 'must be a number, not a string'],
  [z.int(), 1.5, 'must be a whole number'],
  [z.string().min(1), '', 'must have at least 1 character'],
  [z.string().max(2), 'abc', 'must be at most 2 characters'],
  [z.array(z.int()).min(2), [1], 'must have at least 2 items'],
  [z.array(z.int()).max(1), [1, 2], 'must be at most 1 item'],
  [z.int().min(3), 2, 'must be at least 3'],
  [z.number().gt(3), 3, 'must be more than 3'],
  [z.number().lt(3), 3, 'must be less than 3'],
  [z.enum(['strict', 'permissive']), 'lax', 'must be one of "strict", "permissive"'],
  [z.literal('a'), 'b', 'must be "a"'],
  [z.email(), 'ada', 'must be an email address such as ada@example.com'],
  [z.string().regex(/x/), 'y', 'is not valid: /docs says what is taken'],
  [z.string().refine(() => false), 'y', 'is not valid: /docs says what is taken'],
  [z.string().regex(/x/, 'must have an x'), 'y', 'must have an x'],
])('what a schema leaves unsaid is worded: %#', (field, value, message) => {
  expect(detailsOf(z.object({ field }), { field: value })).toEqual([{ path: 'body.field', message }])
})

test('a batch without its object is told so, and one of 101 how many it may have', () => {
  const batch = contract.emails.sendBatch.body
  expect(detailsOf(batch, [{}])).toEqual([{ path: 'body', message: 'must be an object, not a list' }])
  expect(detailsOf(batch, { emails: Array(101).fill({}) })).toEqual([
    { path: 'body.emails', message: 'must be at most 100 items' },
  ])
})

test('a field nobody knows is named, in a member of a union too', () => {
  const body = z.object({ one: z.union([z.string(), z.strictObject({ a: z.string().optional() })]) })
  expect(detailsOf(body, { one: { b: 1 } })).toEqual([{ path: 'body.one.b', message: 'is not known here' }])
})

test('a schema that throws is a 500 of its request alone, and in the log', async () => {
  const unhandled: unknown[] = []
  const note = (reason: unknown) => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  const overflow = () => {
    throw new RangeError('Maximum call stack size exceeded')
  }
  const c = initContract()
  const responses = { 200: z.object({}) }
  const router = c.router({
    within: c.router({
      body: { method: 'POST', path: '/body', body: z.object({ a: z.string().refine(overflow) }), responses },
      query: { method: 'GET', path: '/query', query: z.object({ a: z.string().transform(overflow) }), responses },
      path: { method: 'GET', path: '/path/:a', pathParams: z.object({ a: z.string().refine(overflow) }), responses },
    }),
  })
  const log: string[] = []
  const app = express().use(express.json())
  const fine = async () => ({ status: 200 as const, body: {} })
  createExpressEndpoints(validatedAtOnce(router), { within: { body: fine, query: fine, path: fine } }, app, {
    logInitialization: false,
  })
  app.use(answerErrors(createLogger({ level: 'error', destination: { write: (line) => void log.push(line) } })))
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const { port } = Object(server.address())
  const ask = async (path: string, options: RequestInit = {}) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, options)
    return [answer.status, Object(await answer.json()).error?.code]
  }
  const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"a":"b"}' }
  expect(await ask('/body', json)).toEqual([500, 'internal_error'])
  expect(await ask('/query?a=b')).toEqual([500, 'internal_error'])
  expect(await ask('/path/b')).toEqual([500, 'internal_error'])
  // An ordinary fault gets its usual answer.
  expect(await ask('/body', { ...json, body: '{"a":1}' })).toEqual([400, undefined])
  expect(log.map((line) => JSON.parse(line).err.type)).toEqual(['RangeError', 'RangeError', 'RangeError'])
  expect(unhandled).toEqual([])
})
