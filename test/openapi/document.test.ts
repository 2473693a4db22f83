import { type AppRoute, type AppRouter, isAppRoute } from '@ts-rest/core'
import type { LinkObject, OperationObject, ParameterObject, ReferenceObject, ResponseObject } from 'openapi3-ts/oas31'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type ErrorCode, errorTable } from '../../contract/errors.ts'
import { eventTypeNames } from '../../contract/event-types.ts'
import { contract } from '../../contract/index.ts'
import { permissions } from '../../contract/permissions.ts'
import type { RouteMetadata } from '../../contract/route.ts'
import { createDocument } from '../../openapi/document.ts'
import { publishedDocument } from '../../openapi/published.ts'
import { deprecation, contract as small } from '../http/gates.ts'
import { objectsOf, resolve } from './walk.ts'

const document = publishedDocument()

function routesOf(router: AppRouter): AppRoute[] {
  return Object.values(router).flatMap((entry) => (isAppRoute(entry) ? [entry] : routesOf(entry)))
}

const routes = routesOf(contract).map((route) => {
  const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
  const operation = resolve(document, `#/paths/${path.replaceAll('/', '~1')}/${route.method.toLowerCase()}`)
  return { route, name: `${route.method} ${path}`, operation: operation as OperationObject }
})

function isOfDashboard({ caller }: RouteMetadata): boolean {
  return caller === 'session' || caller === 'operator' || caller === 'none'
}

function metadataOf(route: AppRoute): RouteMetadata {
  return route.metadata as RouteMetadata
}

/** The object itself, or what it refers to. */
function follow<T>(entry: T): Exclude<T, ReferenceObject> {
  const isReference = typeof entry === 'object' && entry !== null && '$ref' in entry
  return (isReference ? resolve(document, String(entry.$ref)) : entry) as Exclude<T, ReferenceObject>
}

function responsesOf(operation: OperationObject): [status: string, response: ResponseObject][] {
  return Object.entries(operation.responses ?? {}).map(([status, response]) => [status, follow(response)])
}

function parametersOf(operation: OperationObject, place: string): ParameterObject[] {
  return (operation.parameters ?? []).map((entry) => follow(entry)).filter((parameter) => parameter.in === place)
}

test('every reference leads somewhere', () => {
  const references = [...objectsOf(document)].flatMap(({ value }) => ('$ref' in value ? [String(value.$ref)] : []))
  expect(references.length).toBeGreaterThan(100)
  expect(references.filter((reference) => resolve(document, reference) === undefined)).toEqual([])
})

test('a union of which one member fits is `oneOf`: generators for Rust make an empty type of `anyOf`', () => {
  const unions = [...objectsOf(document)].flatMap(({ value }) => (Array.isArray(value.anyOf) ? [value.anyOf] : []))
  expect(unions.filter((members) => !members.some(({ type }) => type === 'null'))).toEqual([])
  const { SendEmail } = document.components?.schemas ?? {}
  for (const field of ['to', 'cc', 'bcc', 'replyTo']) {
    const { oneOf } = follow(Object(SendEmail).properties[field])
    expect(oneOf).toMatchObject([{ $ref: '#/components/schemas/Mailbox' }, { type: 'array' }])
  }
})

test('the schema of a parameter has nothing beside its `$ref`: generated Rust would not compile', () => {
  const schemas = routes.flatMap(({ operation }) => (operation.parameters ?? []).map((one) => follow(one).schema ?? {}))
  const references = schemas.filter((schema) => '$ref' in schema)
  expect(references.length).toBeGreaterThan(5)
  expect(references.filter((schema) => Object.keys(schema).length > 1)).toEqual([])
})

test('every component is used', () => {
  const text = JSON.stringify(document)
  const names = Object.entries(document.components ?? {}).flatMap(([kind, group]) =>
    kind === 'securitySchemes' ? [] : Object.keys(group).map((name) => `#/components/${kind}/${name}`),
  )
  expect(names.filter((name) => !text.includes(`"${name}"`))).toEqual([])
})

test('paths lead to every schema: generators for Go leave out what only webhooks refer to', () => {
  const found = new Set<string>()
  const add = (place: unknown): void => {
    for (const { value } of objectsOf(place)) {
      const reference = '$ref' in value ? String(value.$ref) : null
      if (reference === null || found.has(reference)) continue
      found.add(reference)
      add(resolve(document, reference))
    }
  }
  add(document.paths)
  const names = Object.keys(document.components?.schemas ?? {})
  expect(names.filter((name) => !found.has(`#/components/schemas/${name}`))).toEqual([])
})

describe.each(routes)('$name', ({ route, operation }) => {
  const metadata = metadataOf(route)

  test('an operation is there, with the statuses of the contract and no others', () => {
    expect(Object.keys(operation.responses ?? {})).toEqual(Object.keys(route.responses))
    expect(operation.operationId).toBe(metadata.operationId)
  })

  test('an operation has a summary, a description, a tag and the permission it needs', () => {
    expect(operation.summary).toBeTruthy()
    expect(operation.description).toContain(metadata.permission === null ? 'Needs' : `\`${metadata.permission}\``)
    expect(document.tags?.map((tag) => tag.name)).toContain(operation.tags?.[0])
    const needed = metadata.permission === null ? [] : [metadata.permission]
    const schemes = {
      session: 'session',
      operator: 'session',
      portal: 'portal',
      key: 'bearer',
      any: 'bearer',
      none: '',
    }
    const scheme = schemes[metadata.caller]
    expect(operation.security).toEqual(metadata.caller === 'none' ? [] : [{ [scheme]: needed }])
    if (needed.length > 0) expect(permissions).toContain(operation['x-required-permission'])
  })

  test('an operation describes every error it can answer, with an example', () => {
    for (const code of metadata.errors) {
      const response = follow<ResponseObject>(operation.responses?.[errorTable[code].status])
      expect(response.description).toContain(`\`${code}\``)
      const example = follow(response.content?.['application/json']?.examples?.[code] ?? {})
      expect(example).toMatchObject({ value: { error: { code } } })
    }
  })

  test('an operation names the headers of its answers', () => {
    for (const [status, response] of responsesOf(operation)) {
      const headers = Object.keys(response.headers ?? {})
      expect(headers).toContain('X-Request-Id')
      expect(headers).toContain('X-RateLimit-Remaining')
      expect(headers.includes('WWW-Authenticate')).toBe(status === '401')
      expect(headers.includes('Retry-After')).toBe(status === '429' || status === '503')
      expect(headers.includes('Idempotent-Replayed')).toBe(status < '300' && metadata.idempotency !== 'none')
    }
  })

  test('an operation takes the parameters of its path, and the idempotency key where it is kept', () => {
    const inPath = [...route.path.matchAll(/:(\w+)/g)].map((match) => match[1])
    expect(parametersOf(operation, 'path').map((parameter) => parameter.name)).toEqual(inPath)
    const headers = parametersOf(operation, 'header').map((parameter) => parameter.name)
    expect(headers).toEqual([
      ...(isOfDashboard(metadata) ? ['X-Postern-Dashboard'] : []),
      ...(metadata.caller === 'session' && metadata.permission !== null ? ['X-Postern-Account'] : []),
      ...(metadata.idempotency === 'none' ? [] : ['Idempotency-Key']),
      ...(metadata.operationId === 'streamEvents' ? ['Last-Event-ID'] : []),
    ])
  })

  test('an operation has a body where one belongs', () => {
    expect(operation.requestBody !== undefined).toBe('body' in route)
    expect(responsesOf(operation).find(([status]) => status === '204')?.[1].content).toBeUndefined()
  })
})

test('objects that are read are closed, objects that are sent are open', () => {
  const closed = (place: unknown) => [...objectsOf(place)].filter(({ value }) => value.additionalProperties === false)
  for (const { route, operation, name } of routes) {
    const body = follow(operation.requestBody)
    const schema = body && follow(body.content['application/json']?.schema)
    if ('body' in route && body?.content['text/csv'] === undefined)
      expect(schema, name).toMatchObject({ type: 'object', additionalProperties: false })
    for (const [status, response] of responsesOf(operation)) {
      expect(closed(follow(response.content?.['application/json']?.schema)), `${name} ${status}`).toEqual([])
    }
  }
})

test('every link names an operation and all parameters of its path', () => {
  const operations = new Map(routes.map(({ operation }) => [operation.operationId, operation]))
  const links = routes.flatMap(({ operation }) =>
    responsesOf(operation).flatMap(([, response]) => Object.values(response.links ?? {}) as LinkObject[]),
  )
  expect(links.length).toBeGreaterThan(20)
  for (const link of links) {
    const target = operations.get(link.operationId)
    if (target === undefined) throw new Error(`no operation ${link.operationId}`)
    const needed = parametersOf(target, 'path').map((parameter) => parameter.name)
    expect(Object.keys(link.parameters ?? {}).sort(), link.operationId).toEqual(needed.sort())
  }
})

test('every operation on one thing can be reached by a link', () => {
  const text = JSON.stringify(document.paths)
  const onOne = routes.filter(({ route }) => route.path.includes(':')).map(({ operation }) => operation.operationId)
  expect(onOne.filter((id) => !text.includes(`"operationId":"${id}","parameters":{`))).toEqual([])
})

test('all nineteen event types are webhooks, signed and described', () => {
  expect(Object.keys(document.webhooks ?? {})).toEqual(eventTypeNames)
  expect(eventTypeNames).toHaveLength(19)
  for (const [type, item] of Object.entries(document.webhooks ?? {})) {
    const operation = item.post ?? {}
    const headers = parametersOf(operation, 'header').map((parameter) => parameter.name)
    const signed = ['X-Service-Signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature']
    expect(headers).toEqual([...signed, 'X-Service-Mode', 'X-Service-Sample', 'traceparent'])
    const schema = follow(follow(operation.requestBody)?.content['application/json']?.schema)
    expect(schema).toMatchObject({ properties: { type: { const: type } }, examples: [{ type }] })
    expect(Object.keys(operation.responses ?? {}).sort()).toEqual(['2XX', '410', 'default'])
  }
})

test.each(['Event', 'PushedEvent'])('%s is one of all event types, told apart by a constant', (name) => {
  const { oneOf, properties, required } = Object(document.components?.schemas?.[name])
  const types = oneOf.map((member: ReferenceObject) => Object(follow(member)).properties.type.const)
  expect(types).toEqual(eventTypeNames)
  expect(properties.type).toEqual({ $ref: '#/components/schemas/EventTypeName' })
  expect(required).toEqual(['id', 'type'])
})

test('no union has a discriminator: what generators for Rust make of it reads nothing', () => {
  expect([...objectsOf(document)].filter(({ value }) => 'discriminator' in value)).toEqual([])
})

test('every code of the error table is in the document', () => {
  const text = JSON.stringify(document)
  const codes = Object.keys(errorTable) as ErrorCode[]
  expect(codes.filter((code) => !text.includes(`\`${code}\``))).toEqual([])
})

test('the same contract gives the same document, a changed one another', () => {
  const version = document.info.version
  expect(JSON.stringify(createDocument({ contract, version }))).toBe(JSON.stringify(document))
  const get = { ...contract.webhooks.get, summary: 'Look at a webhook' }
  const changed = { ...contract, webhooks: { ...contract.webhooks, get } }
  expect(JSON.stringify(createDocument({ contract: changed, version }))).not.toBe(JSON.stringify(document))
})

test('a route without what the document needs is refused by name', () => {
  const { metadata: _, ...bare } = contract.webhooks.get
  expect(() => createDocument({ contract: { bare }, version: '1' })).toThrow('GET /v1/webhooks/:id has no metadata')
  const undescribed = { ...contract.webhooks.get, description: '' }
  expect(() => createDocument({ contract: { undescribed }, version: '1' })).toThrow('no description')
})

test('a deprecated operation is marked, and says what to use instead', () => {
  const { paths = {}, components } = createDocument({ contract: { former: small.former }, version: '1' })
  const operation = paths['/former']?.post
  expect(operation?.deprecated).toBe(true)
  expect(operation?.description).toContain(`Deprecated: use \`${deprecation.use}\`. Works until 2027-01-01 at least.`)
  expect(Object.keys(Object(operation?.responses?.['201']).headers)).toEqual(
    expect.arrayContaining(['Deprecation', 'Sunset']),
  )
  expect(components?.headers).toHaveProperty('Sunset')
})

test('a deprecated field is marked', () => {
  const { former } = small
  const body = z.object({ old: z.string().optional().meta({ deprecated: true }) })
  const { paths = {} } = createDocument({ contract: { former: { ...former, body } }, version: '1' })
  const { requestBody } = Object(paths['/former']?.post)
  expect(requestBody.content['application/json'].schema.properties.old).toMatchObject({ deprecated: true })
})
