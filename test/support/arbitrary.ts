import { generateKeyPairSync } from 'node:crypto'
import fc from 'fast-check'
import type { SchemaObject } from 'openapi3-ts/oas31'
import { faultsBySchema } from './answer-check.ts'
import { dereference, type Schema } from './published-spec.ts'

/** Lengths above this are generated only as the longest that is allowed. */
const usualLength = 40
/** Strings that may be longer than this are never generated at full length: test/fault/hostile-bodies.test.ts does. */
const greatestLength = 10_000

/** How many unions that hold themselves may stand in one another: a group of conditions within a group. */
const greatestDepth = 2

const made = new Map<string, fc.Arbitrary<unknown>>()

/**
 * Values that are valid by a schema of the published spec.
 *
 * @param depth How many unions that hold themselves this one stands in.
 */
export function valid(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  // Making an arbitrary takes longer than drawing from it, and most schemas stand in several places.
  const key = `${depth} ${JSON.stringify(schema)}`
  const arbitrary = made.get(key) ?? make(schema, depth)
  made.set(key, arbitrary)
  return arbitrary
}

function make(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const ofSchema = (inner: Schema) => valid(inner, depth)
  const resolved = dereference<SchemaObject>(schema)
  if (resolved.enum !== undefined) return fc.constantFrom(...resolved.enum)
  if (resolved.const !== undefined) return fc.constant(resolved.const)
  const choices = resolved.anyOf ?? resolved.oneOf
  if (choices !== undefined) {
    const flat = choices.filter((choice) => !holds(choice, schema))
    if (flat.length === choices.length) return fc.oneof(...choices.map(ofSchema))
    return fc.oneof(...(depth < greatestDepth ? choices : flat).map((choice) => valid(choice, depth + 1)))
  }
  const types = [resolved.type ?? []].flat()
  if (types.length > 1) return fc.oneof(...types.map((type) => ofSchema({ ...resolved, type })))
  switch (types[0]) {
    case 'string':
      return text(resolved).filter((value) => isValid(resolved, value))
    case 'integer':
      return fc.integer({ min: resolved.minimum ?? -1000, max: resolved.maximum ?? 1000 })
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return list(resolved, ofSchema)
    case 'object':
      return fields(resolved, ofSchema)
    default:
      throw new Error(`no values can be made for ${JSON.stringify(resolved)}: teach test/support/arbitrary.ts`)
  }
}

/** Bodies in which one thing is wrong by the schema: a field missing, unknown or of a wrong value, or the whole. */
export function invalidBody(schema: Schema): fc.Arbitrary<unknown> {
  const { properties = {}, required = [] } = dereference<SchemaObject>(schema)
  const whole = fc.constantFrom(null, [], 'text', 0, true, [{}])
  const changed = valid(schema).chain((body) => {
    const base = Object(body)
    const without = required.map((name) => {
      const { [name]: _, ...rest } = base
      return rest
    })
    const wrong = Object.entries(properties).flatMap(([name, property]) =>
      strange.filter((value) => !isValid(property, value)).map((value) => ({ ...base, [name]: value })),
    )
    return fc.constantFrom({ ...base, unexpected: true }, ...without, ...wrong)
  })
  return fc
    .oneof({ weight: 1, arbitrary: whole }, { weight: 4, arbitrary: changed })
    .filter((value) => !isValid(schema, value))
}

/** Texts that a query parameter with this schema must refuse. */
export function invalidQueryValues(schema: Schema): string[] {
  const { type } = dereference<SchemaObject>(schema)
  const candidates = [
    '',
    ' ',
    'x',
    '0',
    '-1',
    '1.5',
    '101',
    '1e1',
    '0x10',
    ' 5',
    'null',
    'true',
    'ä',
    '\u0000',
    'x'.repeat(500),
  ]
  return candidates.filter(
    (value) => !isValid(schema, type === 'integer' && /^-?\d+$/.test(value) ? Number(value) : value),
  )
}

function isValid(schema: Schema, value: unknown): boolean {
  return faultsBySchema(schema, value).length === 0
}

const strange: readonly unknown[] = [
  null,
  true,
  0,
  1.5,
  '',
  'x',
  '\u0000',
  'x'.repeat(5000),
  [],
  [null],
  ['x'],
  {},
  { a: 1 },
  'javascript:alert(1)',
  '2026-13-45T00:00:00Z',
]

function text({ format, pattern, minLength = 0, maxLength }: SchemaObject): fc.Arbitrary<string> {
  if (format === 'uri') return fc.webUrl({ validSchemes: ['http', 'https'], withQueryParameters: true })
  if (format === 'email') return fc.emailAddress()
  if (format === 'mailbox') return mailbox()
  if (format === 'idn-hostname') return fc.domain()
  if (format === 'date-time') return moment()
  if (format === 'rsa-private-key') return fc.constant(rsaPrivateKey)
  if (format === 'ed25519-private-key') return fc.constant(ed25519PrivateKey)
  if (pattern !== undefined && !pattern.startsWith('^[^')) return fc.stringMatching(new RegExp(pattern, 'u'))
  const max = Math.min(maxLength ?? usualLength, Math.max(usualLength, minLength))
  const usual = fc.oneof(
    fc.string({ minLength, maxLength: max }),
    fc.string({ minLength, maxLength: max, unit: 'binary' }),
  )
  if (maxLength === undefined || maxLength > greatestLength) return usual
  const longest = fc.string({ minLength: maxLength, maxLength, unit: fc.constantFrom('a', 'é', '😀') })
  return fc.oneof({ weight: 5, arbitrary: usual }, { weight: 1, arbitrary: longest })
}

const pem = { format: 'pem', type: 'pkcs8' } as const
const rsaPrivateKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export(pem).toString()
const ed25519PrivateKey = generateKeyPairSync('ed25519').privateKey.export(pem).toString()

function mailbox(): fc.Arbitrary<string> {
  const address = fc.emailAddress().filter((value) => value.length <= 254)
  const name = fc.string({ maxLength: 20 }).map((value) => `"${value.replaceAll(/["\\]/g, '\\$&')}"`)
  return fc.oneof(
    address,
    fc.tuple(name, address).map(([quoted, bare]) => `${quoted} <${bare}>`),
  )
}

function moment(): fc.Arbitrary<string> {
  const range = { min: new Date('1970-01-02T00:00:00Z'), max: new Date('2099-12-30T00:00:00Z'), noInvalidDate: true }
  return fc
    .tuple(fc.date(range), fc.constantFrom('Z', '+02:00', '-11:30'))
    .map(([date, offset]) => date.toISOString().replace('Z', offset))
}

type OfSchema = (schema: Schema) => fc.Arbitrary<unknown>

/** Whether `union` stands in the fields of one of its choices. */
function holds(choice: Schema, union: Schema): boolean {
  return '$ref' in union && JSON.stringify(dereference(choice)).includes(JSON.stringify(union.$ref))
}

function list(
  { items, minItems = 0, maxItems = 5, uniqueItems = false }: SchemaObject,
  ofSchema: OfSchema,
): fc.Arbitrary<unknown[]> {
  const lengths = { minLength: minItems, maxLength: maxItems }
  const item = ofSchema(items ?? {})
  return uniqueItems ? fc.uniqueArray(item, lengths) : fc.array(item, lengths)
}

function fields(
  { properties = {}, required = [] }: SchemaObject,
  ofSchema: OfSchema,
): fc.Arbitrary<Record<string, unknown>> {
  const model = Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, ofSchema(schema)]))
  // A rule between two fields, which no schema says: MJML stands in the place of HTML.
  return fc.record(model, { requiredKeys: required }).map(({ html, ...others }) => {
    const isWritten = html !== undefined && typeof others.mjml !== 'string'
    return isWritten ? { ...others, html } : others
  })
}
