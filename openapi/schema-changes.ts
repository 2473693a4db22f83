import { isDeepStrictEqual } from 'node:util'

/*
 * What differs between two versions of a schema so that it could break a client. What a client sends ('request')
 * may only be taken more widely. What it is sent ('answer') may only tell more: new fields, new values of an
 * enumeration and new members that `type` tells apart are compatible: the introduction says that they may be added.
 */

export type Node = Readonly<Record<string, unknown>>
/** A part of a document, such as a schema, which may be a reference into it. */
export type Side = { document: Node; part: unknown }
export type Compared = { before: Side; after: Side; at: string }
export type Direction = 'request' | 'answer'

export function asNode(value: unknown): Node {
  return typeof value === 'object' && value !== null ? (value as Node) : {}
}

export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The part itself, or what it refers to. */
export function resolve({ document, part }: Side): Node {
  const { $ref } = asNode(part)
  if (typeof $ref !== 'string') return asNode(part)
  const steps = $ref.replace('#/', '').split('/')
  return resolve({ document, part: steps.reduce<unknown>((at, step) => asNode(at)[step], document) })
}

type Walk = { direction: Direction; changes: string[]; seen: Set<string> }
/** A pair of schemas without references, where it stands, and how to tell of a change there. */
type Pair = { old: Node; now: Node; compared: Compared; walk: Walk; tell: (change: string) => void }

/** The changes from one schema to another that could break a client, in words. */
export function schemaChanges(compared: Compared, direction: Direction): string[] {
  const changes: string[] = []
  compare(compared, { direction, changes, seen: new Set() })
  return changes
}

function compare(compared: Compared, walk: Walk): void {
  const { before, after, at } = compared
  const tell = (change: string) => void walk.changes.push(`${at}${change}`)
  const names = [nameOf(before.part), nameOf(after.part)]
  if (names[0] !== undefined) {
    if (walk.seen.has(names.join())) return
    walk.seen.add(names.join())
    // Generators make a type of it.
    if (names[1] !== names[0]) tell(`: is ${names[1] ?? 'a schema without a name'} instead of ${names[0]}`)
  }
  const [old, now] = [resolve(before), resolve(after)]
  const [from, to] = walk.direction === 'request' ? [old, now] : [now, old]
  if (typesOf(from).includes('null') && !typesOf(to).includes('null')) {
    tell(walk.direction === 'request' ? ': may not be null' : ': may be null')
  }
  if (walk.direction === 'request' && 'default' in old && !isDeepStrictEqual(old.default, now.default)) {
    tell(': default is another')
  }
  if (essence(old) !== old || essence(now) !== now) {
    compare({ before: { ...before, part: essence(old) }, after: { ...after, part: essence(now) }, at }, walk)
    return
  }
  const pair: Pair = { old, now, compared, walk, tell }
  compareTypes(pair)
  compareMembers(pair)
  if (walk.direction === 'request') compareRules(pair)
  else compareMeaning(pair)
  compareFields(pair)
  for (const [key, place] of Object.entries({ items: '[]', propertyNames: '{name}' })) {
    if (old[key] !== undefined && now[key] !== undefined) compareParts(pair, [old[key], now[key]], place)
  }
}

function compareParts({ compared, walk }: Pair, [old, now]: [unknown, unknown], place: string): void {
  const { before, after, at } = compared
  compare({ before: { ...before, part: old }, after: { ...after, part: now }, at: `${at}${place}` }, walk)
}

/** The name of the component that is referred to. */
function nameOf(part: unknown): string | undefined {
  const { $ref } = asNode(part)
  return typeof $ref === 'string' ? $ref.split('/').at(-1) : undefined
}

function membersOf(schema: Node): readonly unknown[] {
  return asList(schema.oneOf ?? schema.anyOf)
}

const isNull = (member: unknown) => asNode(member).type === 'null'

function typesOf(schema: Node): string[] {
  return [...[schema.type ?? []].flat().map(String), ...(membersOf(schema).some(isNull) ? ['null'] : [])]
}

/** Returns the other member of a union of one schema and null. Other schemas are returned as they are. */
function essence(schema: Node): Node {
  const [member, ...others] = membersOf(schema).filter((one) => !isNull(one))
  return others.length === 0 && membersOf(schema).length === 2 ? asNode(member) : schema
}

/** Returns true when a schema restricts no type, as far as its own keywords say. */
function isOpen(schema: Node): boolean {
  return ['type', 'oneOf', 'anyOf', 'allOf', 'enum', 'const'].every((key) => schema[key] === undefined)
}

function compareTypes({ old, now, walk, tell }: Pair): void {
  const isRequest = walk.direction === 'request'
  const [narrow, wide] = isRequest ? [old, now] : [now, old]
  const types = typesOf(wide)
  if (types.length === 0) return
  if (isOpen(narrow)) tell(isRequest ? `: has to be of type ${types.join()}` : ': may be of any type')
  for (const type of typesOf(narrow)) {
    if (type !== 'null' && !types.includes(type)) tell(`: may ${isRequest ? 'not ' : ''}be of type ${type}`)
  }
}

/** A member of a union is known by its component, by the constant of its `type`, or by its title, never by its place. */
const identities: readonly ((side: Side) => unknown)[] = [
  ({ part }) => nameOf(part),
  (side) => asNode(asNode(resolve(side).properties).type).const,
  (side) => resolve(side).title,
]

function labelOf(side: Side): string {
  const label = identities.map((identity) => identity(side)).find((found) => found !== undefined)
  return String(label ?? resolve(side).type ?? JSON.stringify(side.part))
}

/** The member of another version of the union that stands for the same. */
function counterpartOf(side: Side, others: readonly Side[]): Side | undefined {
  for (const identity of identities) {
    const own = identity(side)
    const found = own === undefined ? undefined : others.find((other) => identity(other) === own)
    if (found !== undefined) return found
  }
  const alike = others.filter((other) => labelOf(other) === labelOf(side))
  return alike.length === 1 ? alike[0] : others.find((other) => isDeepStrictEqual(other.part, side.part))
}

/** Whether it is `anyOf` or `oneOf` matters to generators: the types have other names. */
function compareMembers(pair: Pair): void {
  const { old, now, compared, walk, tell } = pair
  const keyOf = (schema: Node) => ['oneOf', 'anyOf'].find((key) => schema[key] !== undefined) ?? 'no union'
  if (keyOf(old) !== keyOf(now)) tell(`: is ${keyOf(now)} instead of ${keyOf(old)}`)
  const sidesOf = ({ document }: Side, schema: Node) => membersOf(schema).map((part) => ({ document, part }))
  const [olds, nows] = [sidesOf(compared.before, old), sidesOf(compared.after, now)]
  if (olds.length === 0 || nows.length === 0) return
  for (const side of olds) {
    const other = counterpartOf(side, nows)
    if (other !== undefined) compareParts(pair, [side.part, other.part], `(${labelOf(side)})`)
    else if (!isNull(side.part))
      tell(`: ${walk.direction === 'request' ? 'does not take' : 'is never'} ${labelOf(side)}`)
  }
  if (walk.direction === 'request') return
  for (const side of nows) {
    const isTold = asNode(asNode(resolve(side).properties).type).const !== undefined
    if (!isTold && !isNull(side.part) && counterpartOf(side, olds) === undefined) tell(`: may be ${labelOf(side)}`)
  }
}

const upperBounds = ['maxLength', 'maximum', 'maxItems', 'maxProperties']
const lowerBounds = ['minLength', 'minimum', 'minItems', 'minProperties']

/** What a client must keep. A bound may become wider, not narrower. */
function compareRules({ old, now, tell }: Pair): void {
  if (now.enum !== undefined) {
    const values = asList(now.enum)
    if (old.enum === undefined) tell(': has fixed values')
    for (const value of asList(old.enum)) if (!values.includes(value)) tell(`: does not take ${String(value)}`)
  }
  for (const key of upperBounds) {
    if (Number(now[key] ?? Infinity) < Number(old[key] ?? Infinity)) tell(`: ${key} is lower (${String(now[key])})`)
  }
  for (const key of lowerBounds)
    if (Number(now[key] ?? 0) > Number(old[key] ?? 0)) tell(`: ${key} is higher (${String(now[key])})`)
  for (const key of ['pattern', 'format', 'const', 'allOf', 'uniqueItems']) {
    if (now[key] !== undefined && !isDeepStrictEqual(now[key], old[key])) tell(`: ${key} is another`)
  }
}

/** What a client relies on: generators make types of formats. */
function compareMeaning({ old, now, tell }: Pair): void {
  const values = asList(now.enum)
  for (const value of asList(old.enum)) {
    if (values.length > 0 && !values.includes(value)) tell(`: is never ${String(value)}`)
  }
  for (const key of ['format', 'const']) if (old[key] !== now[key]) tell(`: ${key} is another`)
}

function compareFields(pair: Pair): void {
  const { old, now, walk, tell } = pair
  const isRequest = walk.direction === 'request'
  const [oldFields, fields] = [asNode(old.properties), asNode(now.properties)]
  const [oldRequired, required] = [asList(old.required), asList(now.required)]
  for (const [name, field] of Object.entries(oldFields)) {
    if (fields[name] === undefined) tell(`.${name}: is gone`)
    else {
      if (!isRequest && oldRequired.includes(name) && !required.includes(name)) tell(`.${name}: may be missing`)
      compareParts(pair, [field, fields[name]], `.${name}`)
    }
  }
  if (isRequest) for (const name of required) if (!oldRequired.includes(name)) tell(`.${String(name)}: is required`)

  // Without a word on them, other fields may be anything.
  const [oldOthers, others] = [old, now].map((schema) => schema.additionalProperties ?? true)
  if (oldOthers === false || (oldOthers === true && (others === true || !isRequest))) return
  if (others === false) tell(isRequest ? ': takes no other fields' : ': has no other fields')
  else compareParts(pair, [oldOthers, others], '{}')
}
