import { type AppRouter, isAppRoute } from '@ts-rest/core'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { longCampaignFields } from '../../contract/campaign-resource.ts'
import { longEmailFields } from '../../contract/email-content.ts'
import { sendEmail } from '../../contract/emails.ts'
import { boundedString, boundOf, list, record } from '../../contract/fields.ts'
import { contract } from '../../contract/index.ts'
import { maxStringBytes } from '../../server/http/body.ts'
import { tooLongLength } from '../../server/http/read-json.ts'

/*
 * Whatever a client may send has an upper bound that is looked at before anything else: see contract/fields.ts.
 */

/** Returns the schemas of requests, by operation and part. */
function partsOf(router: AppRouter): [string, z.core.$ZodType][] {
  return Object.values(router).flatMap((entry): [string, z.core.$ZodType][] => {
    if (!isAppRoute(entry)) return partsOf(entry)
    const parts = { path: entry.pathParams, query: entry.query, body: 'body' in entry ? entry.body : undefined }
    return [
      ...Object.entries({ ...parts, headers: entry.headers }).flatMap(([part, schema]): [string, z.core.$ZodType][] =>
        schema instanceof z.ZodType ? [[`${entry.method} ${entry.path} ${part}`, schema]] : [],
      ),
    ]
  })
}

/** Why a schema lets a value of any length in, by where it stands in it. */
function unbounded(schema: z.core.$ZodType, at: string, above: readonly z.core.$ZodType[] = []): string[] {
  // A condition within a condition.
  if (above.includes(schema)) return []
  const walk = (inner: z.core.$ZodType, place: string) => unbounded(inner, place, [...above, schema])
  const bound = boundOf(schema)
  if (schema instanceof z.ZodPreprocess) {
    const { out } = schema.def
    const faults = bound === null ? [`${at}: preprocessed without a bound`] : []
    // It has counted the entries already.
    if (out instanceof z.ZodArray) return [...faults, ...walk(out.element, `${at}[]`)]
    if (out instanceof z.ZodRecord) {
      return [...faults, ...walk(out.keyType, `${at}{name}`), ...walk(out.valueType, `${at}{}`)]
    }
    return [...faults, ...walk(out, at)]
  }
  if (schema instanceof z.ZodObject) {
    const isOpen = schema.def.catchall !== undefined && !(schema.def.catchall instanceof z.ZodNever)
    const fields = Object.entries(schema.shape).flatMap(([name, field]) => walk(field, `${at}.${name}`))
    return isOpen ? [...fields, `${at}: takes any other field`] : fields
  }
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return walk(schema.def.innerType, at)
  }
  if (schema instanceof z.ZodUnion) return schema.def.options.flatMap((option) => walk(option, at))
  if (schema instanceof z.ZodEnum || schema instanceof z.ZodLiteral) return []
  if (schema instanceof z.ZodBoolean || schema instanceof z.ZodNumber || schema instanceof z.ZodNull) return []
  return bound === null ? [`${at}: ${schema._zod.def.type} without a bound`] : []
}

const parts: readonly [string, z.core.$ZodType][] = [...partsOf(contract), ['an email of a batch', sendEmail]]

test.each(parts)('%s is bounded', (_, schema) => {
  // An email of a batch is read by itself, as `sendEmail`, a contact as `addContact`, and the values of a template are
  // measured as JSON (server/templates/variables.ts).
  const readLater = ['.emails[]', '.contacts[]', '.variables{}', '.template.variables{}']
  const isReadLater = (fault: string) => readLater.some((place) => fault === `${place}: unknown without a bound`)
  expect(unbounded(schema, '').filter((fault) => !isReadLater(fault))).toEqual([])
})

/** The strings of a schema, with the name of their field and what they may be. */
function stringsIn(
  schema: z.core.$ZodType,
  name: string,
  above: readonly z.core.$ZodType[] = [],
): { name: string; max: number }[] {
  if (above.includes(schema)) return []
  const walk = (inner: z.core.$ZodType, place: string) => stringsIn(inner, place, [...above, schema])
  if (schema instanceof z.ZodPreprocess) return walk(schema.def.out, name)
  if (schema instanceof z.ZodArray) return walk(schema.def.element, '')
  if (schema instanceof z.ZodRecord) return walk(schema.def.valueType, '')
  if (schema instanceof z.ZodObject) return Object.entries(schema.shape).flatMap(([key, field]) => walk(field, key))
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return walk(schema.def.innerType, name)
  }
  if (schema instanceof z.ZodUnion) return schema.def.options.flatMap((option) => walk(option, name))
  const bound = boundOf(schema)
  return schema instanceof z.ZodString && bound !== null ? [{ name, max: bound.max }] : []
}

test('a string that is read as too long is too long for its field, and none within its bound is', () => {
  // Values in a path or a query are not JSON.
  const bodies = parts.filter(([part]) => part.endsWith(' body') || part === 'an email of a batch')
  const strings = bodies.flatMap(([, schema]) => stringsIn(schema, ''))
  const long = strings.filter(({ max }) => max >= tooLongLength).toSorted((one, other) => one.max - other.max)
  // Where fields of one name have several bounds, the widest.
  expect(Object.fromEntries(long.map(({ name, max }) => [name, max]))).toEqual({
    ...longCampaignFields,
    ...longEmailFields,
  })
  // A character takes at most twelve bytes in JSON: two escapes.
  const others = strings.filter(({ max }) => max < tooLongLength).map(({ max }) => 12 * max)
  expect(Math.max(...others)).toBeLessThan(maxStringBytes)
  expect(others.length).toBeGreaterThan(20)
})

test('more than fifty schemas of the contract are tried', () => {
  expect(parts.length).toBeGreaterThan(50)
})

const fine = boundedString(5)

test.each<[string, z.ZodType]>([
  ['string', z.string()],
  ['string with a late bound', z.string().max(5)],
  ['string with a pattern before its bound', z.string().regex(/a/).max(5)],
  ['format', z.email()],
  ['array', z.array(fine)],
  ['array counted late', z.array(fine).max(5)],
  ['list of what has no bound', list(z.string(), { max: 5 })],
  ['record', z.record(fine, fine)],
  ['record of what has no bound', record(z.string(), recordOptions())],
  ['open object', z.looseObject({})],
  ['member of a union', z.union([fine, z.string()])],
  ['field in a field', z.object({ a: z.object({ b: z.string().optional() }).nullable() })],
  ['preprocessed', z.preprocess((value) => value, fine)],
  ['unknown', z.unknown()],
])('the walk finds what has none: %s', (_, schema) => {
  expect(unbounded(schema, '')).toHaveLength(1)
})

function recordOptions() {
  return { maxEntries: 2, fault: 'too many', maxNameCharacters: 9, nameFault: 'too long a name' }
}

/** A schema and how often it was asked about a value. */
function asked() {
  const seen: unknown[] = []
  const note = (value: unknown) => seen.push(value) > 0
  return { seen, note }
}

test('nothing looks at a string that is too long', () => {
  const { seen, note } = asked()
  const schema = boundedString(3).min(1).refine(note).regex(/^a*$/).refine(note)
  expect(schema.safeParse('aaa').success).toBe(true)
  expect(seen).toHaveLength(2)
  const { error } = schema.safeParse('bbbb')
  expect(error?.issues.map(({ message }) => message)).toEqual(['must be at most 3 characters'])
  expect(seen).toHaveLength(2)
})

test.each([
  ['aaa', true],
  ['aaaa', false],
  ['😀😀😀', true],
  ['😀😀😀a', false],
  ['😀😀😀😀', false],
  ['\ud83d\ud83d\ud83d', true],
])('characters are code points: %j', (value, isFine) => {
  expect(boundedString(3).safeParse(value).success).toBe(isFine)
})

test('no entry of a list that is too long is looked at, in a union too', () => {
  const { seen, note } = asked()
  const entry = boundedString(3).refine(note)
  const schema = z.union([entry, list(entry, { min: 1, max: 2, fault: 'must be at most 2' })])
  expect(schema.safeParse(['a', 'b']).success).toBe(true)
  expect(seen).toHaveLength(2)
  expect(schema.safeParse(Array(3).fill('a')).success).toBe(false)
  expect(seen).toHaveLength(2)
})

test('no value of a record with too many entries, or with a name too long, is looked at', () => {
  const { seen, note } = asked()
  const schema = record(boundedString(3).refine(note), recordOptions())
  const messagesOf = (value: unknown) =>
    schema.safeParse(value).error?.issues.map(({ path, message }) => [path, message])
  expect(messagesOf({ a: 'a', b: 'b' })).toBe(undefined)
  expect(seen).toHaveLength(2)
  expect(messagesOf({ a: 'a', b: 'b', c: 'c' })).toEqual([[[], 'too many']])
  expect(messagesOf({ abcdefghij: 'a' })).toEqual([[['abcdefghij'], 'too long a name']])
  expect(messagesOf({ '\ud83d': 'a' })).toEqual([[['\ud83d'], expect.stringContaining('half of a surrogate pair')]])
  expect(messagesOf(JSON.parse('{"__proto__":"a"}'))).toEqual([[['__proto__'], 'cannot be a name here']])
  expect(seen).toHaveLength(2)
})
