import { readFileSync } from 'node:fs'
import type {
  HeaderObject,
  OpenAPIObject,
  OperationObject,
  ParameterObject,
  ReferenceObject,
  RequestBodyObject,
  ResponseObject,
  SchemaObject,
} from 'openapi3-ts/oas31'

/*
 * The committed spec, read as a client reads it: nothing here comes from the contract.
 */

export type Schema = SchemaObject | ReferenceObject

export type Parameter = { name: string; required: boolean; schema: Schema }

export type DeclaredAnswer = {
  headers: ReadonlyMap<string, { required: boolean; schema: Schema }>
  /** Null: there is no body. */
  body: Schema | null
  /** The type of a body that is not JSON. Null: there is none. */
  otherType: string | null
  /** The codes an error body may have. */
  codes: readonly string[]
}

export type Operation = {
  id: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With `{name}` for each path parameter. */
  template: string
  /** Who may call it: a key, a session of the dashboard, one of the portal, or every client. */
  caller: 'key' | 'session' | 'portal' | 'none'
  /** Null: it is about no account. */
  permission: string | null
  parameters: Record<'path' | 'query' | 'header', readonly Parameter[]>
  /** The names of those that are marked so. */
  deprecatedParameters: readonly string[]
  /** Of JSON. */
  body: { required: boolean; schema: Schema } | null
  /** Whether its body is a file of CSV. */
  takesCsv: boolean
  answers: ReadonlyMap<number, DeclaredAnswer>
}

/** The minimum that our own format for mailboxes requires. The tests of the server check the rest. */
export const mailboxFormat = /^.+@.+$/su

/** Formats of our own for private keys in PEM. */
export const privateKeyFormats = ['rsa-private-key', 'ed25519-private-key'] as const

const file = new URL('../../openapi/openapi.json', import.meta.url)

/** The committed document. */
export const publishedSpec: OpenAPIObject = JSON.parse(readFileSync(file, 'utf8'))

/** Returns `value`, or the object that it refers to. */
export function dereference<T extends object>(value: T | ReferenceObject): T {
  if (!('$ref' in value)) return value
  const keys = value.$ref.replace('#/', '').split('/')
  const target = keys.reduce<unknown>((at, key) => Object(at)[key], publishedSpec)
  if (target === undefined) throw new Error(`the spec refers to ${value.$ref}, which is not there`)
  return target as T
}

const methods = { get: 'GET', post: 'POST', put: 'PUT', patch: 'PATCH', delete: 'DELETE' } as const

/** Every operation of the document. */
export const operations: readonly Operation[] = Object.entries(publishedSpec.paths ?? {}).flatMap(([template, item]) =>
  Object.entries(methods).flatMap(([key, method]) => {
    const operation = item[key as keyof typeof methods]
    return operation === undefined ? [] : [operationOf({ template, method, operation })]
  }),
)

/** Those that take an API key. */
export const keyOperations: readonly Operation[] = operations.filter(({ caller }) => caller === 'key')

/** The operation with this id. Throws when the spec has none. */
export function operationById(id: string): Operation {
  const operation = operations.find((candidate) => candidate.id === id)
  if (operation === undefined) throw new Error(`the spec has no operation ${id}`)
  return operation
}

const patterns = new Map(
  operations.map(({ template }) => [template, new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`)]),
)

/** The operations at `path`, given without its query; none for a path the spec lacks or that cannot be decoded. */
export function operationsAt(path: string): readonly Operation[] {
  if (!isDecodable(path)) return []
  // A path that is there as it is comes before one with parameters (OpenAPI 3.1 §4.8.8.2).
  const concrete = operations.filter(({ template }) => template === path)
  if (concrete.length > 0) return concrete
  const fitting = operations.filter(({ template }) => patterns.get(template)?.test(path))
  const parametersOf = ({ template }: Operation) => template.split('{').length
  const fewest = Math.min(...fitting.map(parametersOf))
  return fitting.filter((operation) => parametersOf(operation) === fewest)
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

type Found = Pick<Operation, 'template' | 'method'> & { operation: OperationObject }

function operationOf({ template, method, operation }: Found): Operation {
  const all = (operation.parameters ?? []).map((parameter) => dereference<ParameterObject>(parameter))
  const parametersIn = (place: string) =>
    all
      .filter((parameter) => parameter.in === place)
      .map(({ name, required, schema }) => ({ name, required: required ?? false, schema: schema ?? {} }))
  const body = operation.requestBody && dereference<RequestBodyObject>(operation.requestBody)
  return {
    id: operation.operationId ?? `${method} ${template}`,
    method,
    template,
    caller: callerOf(operation),
    permission: operation['x-required-permission'] ?? null,
    parameters: { path: parametersIn('path'), query: parametersIn('query'), header: parametersIn('header') },
    deprecatedParameters: all.filter(({ deprecated }) => deprecated).map(({ name }) => name),
    body:
      body && jsonSchemaOf(body.content) !== null
        ? { required: body.required ?? false, schema: jsonSchemaOf(body.content) ?? {} }
        : null,
    takesCsv: body?.content['text/csv'] !== undefined,
    answers: new Map(
      Object.entries(operation.responses ?? {}).map(([status, answer]) => [
        Number(status),
        answerOf(dereference<ResponseObject>(answer)),
      ]),
    ),
  }
}

function callerOf({ security = [] }: OperationObject): Operation['caller'] {
  const [scheme] = security.flatMap((one) => Object.keys(one))
  if (scheme === undefined) return 'none'
  return scheme === 'session' || scheme === 'portal' ? scheme : 'key'
}

function answerOf({ headers = {}, content = {} }: ResponseObject): DeclaredAnswer {
  const declared = Object.entries(headers).map(([name, header]) => {
    const { required, schema } = dereference<HeaderObject>(header)
    return [name.toLowerCase(), { required: required ?? false, schema: schema ?? {} }] as const
  })
  return {
    headers: new Map(declared),
    body: jsonSchemaOf(content) ?? Object.values(content)[0]?.schema ?? null,
    otherType: Object.keys(content).find((type) => type !== 'application/json') ?? null,
    codes: Object.keys(content['application/json']?.examples ?? {}),
  }
}

function jsonSchemaOf(content: RequestBodyObject['content']): Schema | null {
  return content['application/json']?.schema ?? null
}
