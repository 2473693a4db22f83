import {
  asList,
  asNode,
  type Compared,
  type Direction,
  type Node,
  resolve,
  type Side,
  schemaChanges,
} from './schema-changes.ts'

/*
 * What a client of one version of the published spec could stumble over in another: the rules of the policy in
 * the introduction. No package for Node does this: `openapi-diff` (0.24) refuses OpenAPI 3.1, `api-smart-diff` (1.0)
 * knows no `webhooks`, and oasdiff and openapi-changes are programs written in Go.
 */

const methods = ['get', 'post', 'put', 'patch', 'delete']

/** Every change between two OpenAPI documents that could break a client, in words. */
export function breakingChanges(before: object, after: object): string[] {
  const [old, now] = [asNode(before), asNode(after)]
  return [
    ...new Set([
      ...pairsOf(old, now, 'paths').flatMap((pair) => (typeof pair === 'string' ? pair : operationChanges(pair))),
      ...pairsOf(old, now, 'webhooks').flatMap((pair) => (typeof pair === 'string' ? pair : webhookChanges(pair))),
      ...componentsGone(old, now),
    ]),
  ]
}

/** The operations of a section that both documents have; in words those that are gone. */
function pairsOf(old: Node, now: Node, section: 'paths' | 'webhooks'): (Compared | string)[] {
  return Object.entries(asNode(old[section])).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const part = asNode(item)[method]
      if (part === undefined) return []
      const at = section === 'paths' ? `${method.toUpperCase()} ${path}` : `webhook ${path}`
      const other = asNode(asNode(now[section])[path])[method]
      if (other === undefined) return `${at}: is gone`
      return { before: { document: old, part }, after: { document: now, part: other }, at }
    }),
  )
}

/** Generators make a type of each. */
function componentsGone(old: Node, now: Node): string[] {
  const schemasOf = ({ components }: Node) => asNode(asNode(components).schemas)
  const names = Object.keys(schemasOf(old)).filter((name) => schemasOf(now)[name] === undefined)
  return names.map((name) => `schema ${name}: is gone`)
}

function operationChanges(compared: Compared): string[] {
  const { before, after, at } = compared
  const [old, now] = [asNode(before.part), asNode(after.part)]
  const permissions = [old, now].map((operation) => operation['x-required-permission'])
  return [
    ...nameChanges(compared),
    ...(permissions[0] === permissions[1] ? [] : [`${at}: needs another permission`]),
    ...parameterChanges(compared, 'request'),
    ...requestBodyChanges(compared),
    ...answerChanges(compared),
  ]
}

/** The other way round: the service sends the request. */
function webhookChanges(compared: Compared): string[] {
  const { before, after, at } = compared
  const bodies = [before, after].map((side) => ({ ...side, part: asNode(side.part).requestBody }))
  const [old, now] = bodies.map((side) => ({ ...side, part: schemaIn(side) })) as [Side, Side]
  const [oldAnswers, answers] = [before, after].map((side) => asNode(asNode(side.part).responses)) as [Node, Node]
  const gone = Object.keys(oldAnswers).filter((status) => answers[status] === undefined)
  return [
    ...nameChanges(compared),
    ...parameterChanges(compared, 'answer'),
    ...bodyChanges({ before: old, after: now, at: `${at}, body` }, 'answer'),
    ...gone.map((status) => `${at}, ${status}: is gone`),
  ]
}

function nameChanges({ before, after, at }: Compared): string[] {
  return asNode(before.part).operationId === asNode(after.part).operationId ? [] : [`${at}: operationId is another`]
}

function parametersOf({ document, part }: Side): ReadonlyMap<string, Node> {
  const parameters = asList(asNode(part).parameters).map((one) => resolve({ document, part: one }))
  return new Map(parameters.map((one) => [`${String(one.in)} ${String(one.name)}`, one]))
}

function parameterChanges({ before, after, at }: Compared, direction: Direction): string[] {
  const [olds, nows] = [parametersOf(before), parametersOf(after)]
  const changes: string[] = []
  for (const [name, old] of olds) {
    const now = nows.get(name)
    const place = `${at}, ${name}`
    if (now === undefined) {
      changes.push(`${place}: is gone`)
      continue
    }
    const [wasRequired, isRequired] = [old.required === true, now.required === true]
    if (direction === 'request' && isRequired && !wasRequired) changes.push(`${place}: is required`)
    if (direction === 'answer' && wasRequired && !isRequired) changes.push(`${place}: may be missing`)
    const sides = { before: { ...before, part: old.schema }, after: { ...after, part: now.schema } }
    changes.push(...schemaChanges({ ...sides, at: place }, direction))
  }
  if (direction === 'answer') return changes
  for (const [name, { required }] of nows) {
    if (required === true && !olds.has(name)) changes.push(`${at}, ${name}: is new and required`)
  }
  return changes
}

function schemaIn(side: Side): unknown {
  return asNode(asNode(resolve(side).content)['application/json']).schema
}

function requestBodyChanges({ before, after, at }: Compared): string[] {
  const [old, now] = [before, after].map((side) => ({ ...side, part: asNode(side.part).requestBody })) as [Side, Side]
  if (now.part === undefined) return old.part === undefined ? [] : [`${at}, body: is gone`]
  const isNewlyRequired = resolve(now).required === true && resolve(old).required !== true
  const sides = { before: { ...old, part: schemaIn(old) }, after: { ...now, part: schemaIn(now) } }
  return [
    ...(isNewlyRequired ? [`${at}, body: is required`] : []),
    ...(old.part === undefined ? [] : schemaChanges({ ...sides, at: `${at}, body` }, 'request')),
  ]
}

function bodyChanges(compared: Compared, direction: Direction): string[] {
  if (compared.before.part === undefined) return []
  if (compared.after.part === undefined) return [`${compared.at}: is gone`]
  return schemaChanges(compared, direction)
}

function answerChanges({ before, after, at }: Compared): string[] {
  const [olds, nows] = [asNode(asNode(before.part).responses), asNode(asNode(after.part).responses)]
  return Object.entries(olds).flatMap(([status, part]) => {
    const place = `${at}, ${status}`
    // A client keeps working when an error status is removed.
    if (nows[status] === undefined) return Number(status) < 400 ? [`${place}: is gone`] : []
    const [old, now] = [
      { ...before, part },
      { ...after, part: nows[status] },
    ]
    const [oldHeaders, headers] = [old, now].map((side) => Object.keys(asNode(resolve(side).headers)))
    const lost = oldHeaders?.filter((name) => !headers?.includes(name)) ?? []
    const sides = { before: { ...old, part: schemaIn(old) }, after: { ...now, part: schemaIn(now) } }
    return [...lost.map((name) => `${place}: lacks ${name}`), ...bodyChanges({ ...sides, at: `${place}` }, 'answer')]
  })
}
