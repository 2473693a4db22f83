import { expect, test } from 'vitest'
import { z } from 'zod'
import { contract } from '../../contract/index.ts'
import { DomainError, type ErrorDetail } from '../../server/errors.ts'
import { readPart } from '../../server/http/validation.ts'

const ada = 'ada@example.com'

/** What a body with the fields is told. */
function detailsOf(body: z.ZodType, fields: unknown): readonly ErrorDetail[] {
  const read = readPart(body, fields, [])
  if (!(read instanceof DomainError)) throw new Error('it was taken')
  return read.details ?? []
}

/** What an email with the fields is told. */
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
