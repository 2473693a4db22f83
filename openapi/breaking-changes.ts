/*
 * What a client of one version of the published spec could stumble over in another: the rules of the policy in
 * the introduction. Requests may only be taken more widely, answers may only tell more.
 */

type Node = Readonly<Record<string, unknown>>
type Side = { document: Node; schema: unknown }
type Compared = { before: Side; after: Side; at: string }

const methods = ['get', 'post', 'put', 'patch', 'delete']

function asNode(value: unknown): Node {
  return typeof value === 'object' && value !== null ? (value as Node) : {}
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** The object itself, or what it refers to. */
function resolve(document: Node, value: unknown): Node {
  const { $ref } = asNode(value)
  if (typeof $ref !== 'string') return asNode(value)
  const steps = $ref.replace('#/', '').split('/')
  return resolve(
    document,
    steps.reduce<unknown>((at, step) => asNode(at)[step], document),
  )
}

/** Every change between two OpenAPI documents that could break a client, in words. */
export function breakingChanges(before: object, after: object): string[] {
  const changes: string[] = []
  const [old, now] = [asNode(before), asNode(after)]
  for (const [path, item] of Object.entries(asNode(old.paths))) {
    for (const method of methods) {
      const operation = asNode(item)[method]
      if (operation === undefined) continue
      const at = `${method.toUpperCase()} ${path}`
      const other = asNode(asNode(now.paths)[path])[method]
      if (other === undefined) changes.push(`${at}: is gone`)
      else
        compareOperations(
          { before: { document: old, schema: operation }, after: { document: now, schema: other }, at },
          changes,
        )
    }
  }
  return [...new Set(changes)]
}

function compareOperations({ before, after, at }: Compared, changes: string[]): void {
  const [old, now] = [asNode(before.schema), asNode(after.schema)]
  if (old.operationId !== now.operationId) changes.push(`${at}: operationId is another`)
  if (old['x-required-permission'] !== now['x-required-permission']) changes.push(`${at}: needs another permission`)
  const parametersOf = ({ document }: Side, operation: Node) =>
    new Map(
      asList(operation.parameters)
        .map((one) => resolve(document, one))
        .map((one) => [`${String(one.in)} ${String(one.name)}`, one] as const),
    )
  const parameters = parametersOf(after, now)
  const oldParameters = parametersOf(before, old)
  for (const [name, parameter] of oldParameters) {
    const other = parameters.get(name)
    if (other === undefined) changes.push(`${at}, ${name}: is gone`)
    else {
      if (other.required === true && parameter.required !== true) changes.push(`${at}, ${name}: is required`)
      const sides = { before: { ...before, schema: parameter.schema }, after: { ...after, schema: other.schema } }
      compareRequests({ ...sides, at: `${at}, ${name}` }, { changes, seen: new Set() })
    }
  }
  for (const [name, { required }] of parameters) {
    if (required === true && !oldParameters.has(name)) changes.push(`${at}, ${name}: is new and required`)
  }
  compareBodies({ before, after, at }, changes)
  compareAnswers({ before, after, at }, changes)
}

function schemaIn({ document }: Side, holder: unknown): unknown {
  return asNode(asNode(resolve(document, holder).content)['application/json']).schema
}

function compareBodies({ before, after, at }: Compared, changes: string[]): void {
  const [old, now] = [asNode(before.schema).requestBody, asNode(after.schema).requestBody]
  if (now === undefined) {
    if (old !== undefined) changes.push(`${at}, body: is gone`)
    return
  }
  if (resolve(after.document, now).required === true && resolve(before.document, old).required !== true) {
    changes.push(`${at}, body: is required`)
  }
  if (old === undefined) return
  const sides = {
    before: { ...before, schema: schemaIn(before, old) },
    after: { ...after, schema: schemaIn(after, now) },
  }
  compareRequests({ ...sides, at: `${at}, body` }, { changes, seen: new Set() })
}

function compareAnswers({ before, after, at }: Compared, changes: string[]): void {
  const [old, now] = [asNode(asNode(before.schema).responses), asNode(asNode(after.schema).responses)]
  for (const [status, answer] of Object.entries(old)) {
    const place = `${at}, ${status}`
    if (now[status] === undefined) {
      // A failure that no longer comes breaks nobody.
      if (Number(status) < 400) changes.push(`${place}: is gone`)
      continue
    }
    const headersOf = ({ document }: Side, value: unknown) => Object.keys(asNode(resolve(document, value).headers))
    const headers = new Set(headersOf(after, now[status]))
    for (const name of headersOf(before, answer)) if (!headers.has(name)) changes.push(`${place}: lacks ${name}`)
    const sides = {
      before: { ...before, schema: schemaIn(before, answer) },
      after: { ...after, schema: schemaIn(after, now[status]) },
    }
    if (sides.before.schema === undefined) continue
    if (sides.after.schema === undefined) changes.push(`${place}: has no body`)
    else compareAnswerSchemas({ ...sides, at: place }, { changes, seen: new Set() })
  }
}

type Walk = { changes: string[]; seen: Set<string> }

/** Both schemas without references; null where this pair was looked at already. */
function opened({ before, after }: Compared, { seen }: Walk): { old: Node; now: Node } | null {
  const refs = [asNode(before.schema).$ref, asNode(after.schema).$ref]
  if (refs[0] !== undefined) {
    const pair = refs.join(' ')
    if (seen.has(pair)) return null
    seen.add(pair)
  }
  return { old: resolve(before.document, before.schema), now: resolve(after.document, after.schema) }
}

function typesOf(schema: Node): string[] {
  const members = asList(schema.anyOf ?? schema.oneOf)
  const nullable = members.some((member) => asNode(member).type === 'null') ? ['null'] : []
  return [...[schema.type ?? []].flat().map(String), ...nullable]
}

/** What is not null of a union of one schema and null. */
function essence(schema: Node): Node {
  const members = asList(schema.anyOf ?? schema.oneOf).filter((member) => asNode(member).type !== 'null')
  return members.length === 1 ? asNode(members[0]) : schema
}

/** A union may get more members. Whether it is `anyOf` or `oneOf` matters to generators: the types have other names. */
function compareMembers({ before, after, at }: Compared, { old, now }: { old: Node; now: Node }, walk: Walk): void {
  for (const key of ['anyOf', 'oneOf']) {
    if ((old[key] === undefined) !== (now[key] === undefined)) walk.changes.push(`${at}: ${key} came or went`)
    const [oldMembers, members] = [asList(old[key]), asList(now[key])]
    if (members.length > 0 && members.length < oldMembers.length) walk.changes.push(`${at}: ${key} has fewer members`)
    else if (members.length > 0) {
      for (const [index, member] of oldMembers.entries()) {
        const sides = { before: { ...before, schema: member }, after: { ...after, schema: members[index] } }
        compareRequests({ ...sides, at: `${at}(${index + 1})` }, walk)
      }
    }
  }
}

/** Bounds a client must keep; a bound may become wider, not narrower. */
const upperBounds = ['maxLength', 'maximum', 'maxItems', 'maxProperties']
const lowerBounds = ['minLength', 'minimum', 'minItems', 'minProperties']

function compareRequests(compared: Compared, walk: Walk): void {
  const pair = opened(compared, walk)
  if (pair === null) return
  const { changes } = walk
  const { at, before, after } = compared
  const [old, now] = [pair.old, pair.now]
  if (typesOf(old).includes('null') && !typesOf(now).includes('null')) changes.push(`${at}: may not be null`)
  if (essence(old) !== old || essence(now) !== now) {
    const sides = { before: { ...before, schema: essence(old) }, after: { ...after, schema: essence(now) } }
    compareRequests({ ...sides, at }, walk)
    return
  }
  compareMembers(compared, { old, now }, walk)
  const types = typesOf(now)
  if (types.length > 0) {
    for (const type of typesOf(old)) if (!types.includes(type)) changes.push(`${at}: may not be of type ${type}`)
  }
  if (now.enum !== undefined) {
    const values = asList(now.enum)
    if (old.enum === undefined) changes.push(`${at}: has fixed values`)
    for (const value of asList(old.enum))
      if (!values.includes(value)) changes.push(`${at}: does not take ${String(value)}`)
  }
  for (const key of upperBounds)
    if (Number(now[key] ?? Infinity) < Number(old[key] ?? Infinity)) changes.push(`${at}: ${key} is lower`)
  for (const key of lowerBounds)
    if (Number(now[key] ?? 0) > Number(old[key] ?? 0)) changes.push(`${at}: ${key} is higher`)
  for (const key of ['pattern', 'format', 'uniqueItems']) {
    if (now[key] !== undefined && now[key] !== old[key]) changes.push(`${at}: ${key} is another`)
  }
  compareFields(compared, { old, now, changes })
  const [oldFields, fields] = [asNode(old.properties), asNode(now.properties)]
  for (const [name, field] of Object.entries(oldFields)) {
    if (fields[name] === undefined) continue
    compareRequests(
      { before: { ...before, schema: field }, after: { ...after, schema: fields[name] }, at: `${at}.${name}` },
      walk,
    )
  }
  if (old.items !== undefined && now.items !== undefined) {
    compareRequests(
      { before: { ...before, schema: old.items }, after: { ...after, schema: now.items }, at: `${at}[]` },
      walk,
    )
  }
}

function compareFields({ at }: Compared, { old, now, changes }: { old: Node; now: Node; changes: string[] }): void {
  const fields = asNode(now.properties)
  for (const name of Object.keys(asNode(old.properties))) {
    if (fields[name] === undefined) changes.push(`${at}.${name}: is gone`)
  }
  const required = asList(old.required)
  for (const name of asList(now.required))
    if (!required.includes(name)) changes.push(`${at}.${String(name)}: is required`)
}

/** New fields, and new values of an enumeration, break nobody: the introduction says that they may come. */
function compareAnswerSchemas(compared: Compared, walk: Walk): void {
  const pair = opened(compared, walk)
  if (pair === null) return
  const { changes } = walk
  const { at, before, after } = compared
  const { old, now } = pair
  if (typesOf(now).includes('null') && !typesOf(old).includes('null')) changes.push(`${at}: may be null`)
  if (essence(old) !== old || essence(now) !== now) {
    const sides = { before: { ...before, schema: essence(old) }, after: { ...after, schema: essence(now) } }
    compareAnswerSchemas({ ...sides, at }, walk)
    return
  }
  const types = typesOf(old)
  for (const type of typesOf(now)) {
    if (types.length > 0 && !types.includes(type)) changes.push(`${at}: may be of type ${type}`)
  }
  const values = asList(now.enum)
  for (const value of asList(old.enum))
    if (values.length > 0 && !values.includes(value)) changes.push(`${at}: is never ${String(value)}`)
  const fields = asNode(now.properties)
  const required = asList(now.required)
  for (const [name, field] of Object.entries(asNode(old.properties))) {
    if (fields[name] === undefined) changes.push(`${at}.${name}: is gone`)
    else {
      if (asList(old.required).includes(name) && !required.includes(name)) changes.push(`${at}.${name}: may be missing`)
      compareAnswerSchemas(
        { before: { ...before, schema: field }, after: { ...after, schema: fields[name] }, at: `${at}.${name}` },
        walk,
      )
    }
  }
  if (old.items !== undefined && now.items !== undefined) {
    compareAnswerSchemas(
      { before: { ...before, schema: old.items }, after: { ...after, schema: now.items }, at: `${at}[]` },
      walk,
    )
  }
}
