import { boundedString } from './fields.ts'

/**
 * The prefix of every kind of identifier. An identifier is a TypeID: prefix, underscore and a
 * UUIDv7 in 26 characters of base32, so that identifiers of one kind sort by the time they were made.
 *
 * Source: TypeID specification 0.3.
 */
export const idPrefixes = {
  account: 'acc',
  apiKey: 'key',
  audience: 'aud',
  auditEntry: 'audit',
  campaign: 'cmp',
  capturedMessage: 'cap',
  delivery: 'dlv',
  domain: 'dom',
  email: 'email',
  event: 'evt',
  identity: 'idn',
  import: 'imp',
  inboundMessage: 'inb',
  invitation: 'inv',
  passkey: 'passkey',
  portalSession: 'psn',
  recovery: 'rec',
  request: 'req',
  segment: 'seg',
  session: 'ses',
  subscriber: 'sub',
  suppression: 'sup',
  template: 'tpl',
  topic: 'top',
  user: 'usr',
  webhook: 'wh',
} as const

export type IdKind = keyof typeof idPrefixes

/** The first character holds only three bits, so it never exceeds `7`. */
const suffixPattern = '[0-7][0-9a-hjkmnp-tv-z]{25}'

/** The part after the prefix of an identifier of any kind. */
export const idSuffix = new RegExp(`^${suffixPattern}$`)

/** The text form of one kind of identifier, as a regular expression without anchors lost. */
export function idPattern(kind: IdKind): RegExp {
  return new RegExp(`^${idPrefixes[kind]}_${suffixPattern}$`)
}

export const exampleSuffix = '01jqz4x7m8e5v9t2k6r3w0y1ab'

/** A well-formed identifier of `kind` for examples; it names no object. */
export function exampleId(kind: IdKind): string {
  return `${idPrefixes[kind]}_${exampleSuffix}`
}

/** A schema for identifiers of several kinds. The example is of the first. */
export function idSchemaOf(kinds: readonly [IdKind, ...IdKind[]], description: string) {
  const [first] = kinds
  const prefixes = kinds.map((kind) => idPrefixes[kind])
  const longest = Math.max(...kinds.map((kind) => exampleId(kind).length))
  const fault = `must be a whole identifier that begins with ${prefixes.map((prefix) => `"${prefix}_"`).join(', ')}, such as "${exampleId(first)}"`
  return boundedString(longest, { fault, isPublished: false })
    .regex(new RegExp(`^(?:${prefixes.join('|')})_${suffixPattern}$`), fault)
    .meta({ description, example: exampleId(first) })
}

/** A schema for one kind of identifier. */
export function idSchema(kind: IdKind, description: string) {
  const fault = `must look like "${exampleId(kind)}"`
  return boundedString(exampleId(kind).length, { fault, isPublished: false })
    .regex(idPattern(kind), fault)
    .meta({ description, example: exampleId(kind) })
}

/** A schema for identifiers of one kind that are separated by commas, as in a query. */
export function idsInText(kind: IdKind, { max }: { max: number }) {
  const id = exampleId(kind)
  const fault = `must be at most ${max} identifiers such as "${id}", separated by commas`
  const pattern = `${idPrefixes[kind]}_${suffixPattern}`
  return boundedString(max * (id.length + 1) - 1, { fault, isPublished: false })
    .regex(new RegExp(`^${pattern}(,${pattern}){0,${max - 1}}$`), fault)
    .meta({ example: id })
}
