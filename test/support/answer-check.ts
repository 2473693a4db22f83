import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { readDomainName } from '../../server/domains/name.ts'
import {
  type DeclaredAnswer,
  mailboxFormat,
  type Operation,
  operationsAt,
  privateKeyFormats,
  publishedSpec,
  type Schema,
} from './published-spec.ts'

/** One request and its answer, as they went over the wire. */
export type Exchange = {
  method: string
  /** As sent, with the query. */
  path: string
  status: number
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>
  body: string
}

export type Verdict = {
  /** The operation that was called; null when the spec has none for this path and method. */
  operation: Operation | null
  /** How the answer breaks the spec; none when it does not. */
  faults: string[]
}

/** Judges an answer by the published spec. */
export function checkAnswer(exchange: Exchange): Verdict {
  const path = exchange.path.split('?')[0] ?? ''
  const there = operationsAt(path)
  if (exchange.method === 'HEAD') return { operation: null, faults: faultsOfHead(exchange, there) }
  const operation = there.find(({ method }) => method === exchange.method) ?? null
  if (operation === null) return { operation, faults: faultsOutside(exchange, path, there) }
  const declared = operation.answers.get(exchange.status)
  if (declared === undefined) {
    if (isOfSession(exchange, operation)) return { operation: null, faults: faultsOfErrorBody(exchange) }
    return { operation, faults: [`the status is not declared for ${operation.id}`] }
  }
  return { operation, faults: [...faultsOfHeaders(exchange, declared), ...faultsOfBody(exchange, declared)] }
}

/**
 * Whether the introduction declares an answer, for all operations that take keys too: a session that another page uses,
 * or an account that its user is no member of.
 */
function isOfSession({ status, body }: Exchange, { caller }: Operation): boolean {
  const { code, message } = Object(JSON.parse(body || '{}').error)
  if (caller !== 'key') return false
  return (status === 403 && code === 'forbidden_origin') || (status === 404 && /you are no member of it/.test(message))
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addFormat('idn-hostname', (text: string) => readDomainName(text).fault === null)
ajv.addFormat('mailbox', mailboxFormat)
for (const format of privateKeyFormats) ajv.addFormat(format, /^-----BEGIN (?:RSA )?PRIVATE KEY-----/)
const specUri = 'https://postern.invalid/openapi.json'
ajv.addSchema({ $id: specUri, components: closed(publishedSpec.components) })

const validators = new Map<Schema, ValidateFunction>()

/** Returns the faults of `value` by a schema of the document. A field the schema does not name is a fault too. */
export function faultsBySchema(schema: Schema, value: unknown): string[] {
  let validate = validators.get(schema)
  if (validate === undefined) {
    validate = ajv.compile(absolute(closed(schema)))
    validators.set(schema, validate)
  }
  if (validate(value)) return []
  return (validate.errors ?? []).map(({ instancePath, message, params }) =>
    [instancePath || '(root)', message, params.additionalProperty].filter(Boolean).join(' '),
  )
}

/** A copy in which objects with named properties have no others. What a union may have, its members say. */
function closed<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema), (_, value) => {
    const isOpen = value?.type === 'object' && typeof value.properties === 'object' && value.oneOf === undefined
    return isOpen ? { additionalProperties: false, ...value } : value
  })
}

function absolute(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema), (key, value) =>
    key === '$ref' && typeof value === 'string' && value.startsWith('#') ? specUri + value : value,
  )
}

const errorSchema: Schema = { $ref: '#/components/schemas/Error' }

/** The headers the spec knows at all: where one of them is sent, it must be declared. */
const documentedHeaders = new Set(
  Object.keys(publishedSpec.components?.headers ?? {}).map((name) => name.toLowerCase()),
)

/** The paths that are not part of the API: what their successes look like is their own affair. */
const besideTheApi = /^\/(|healthz|readyz|metrics|openapi\.json|docs(\/.*)?)$/

function faultsOutside(exchange: Exchange, path: string, there: readonly Operation[]): string[] {
  const { status, headers } = exchange
  if (besideTheApi.test(path) && (status < 400 || path === '/readyz')) return []
  if (status < 400) return ['the spec has no such operation, yet it succeeded']
  const faults = faultsOfErrorBody(exchange)
  if (there.length === 0) return faults
  const allowed = there.map((operation) => operation.method).toSorted()
  const told = (headers.allow ?? '').split(',').map((name) => name.trim())
  if (status !== 405) return faults
  const missing = allowed.filter((name) => !told.includes(name))
  return missing.length === 0 ? faults : [...faults, `Allow is "${headers.allow}" and lacks ${missing.join(', ')}`]
}

/** HEAD is GET without the body (RFC 9110 §9.3.2). */
function faultsOfHead(exchange: Exchange, there: readonly Operation[]): string[] {
  const faults = exchange.body === '' ? [] : ['there is a body']
  const get = there.find(({ method }) => method === 'GET')
  if (get === undefined) return faults
  const declared = get.answers.get(exchange.status)
  if (declared === undefined) return [...faults, `the status is not declared for ${get.id}`]
  return [...faults, ...faultsOfHeaders(exchange, declared)]
}

function faultsOfHeaders({ headers }: Exchange, declared: DeclaredAnswer): string[] {
  const faults: string[] = []
  for (const [name, { required, schema }] of declared.headers) {
    const value = headers[name]
    if (value === undefined) {
      if (required) faults.push(`the header ${name} is missing`)
      continue
    }
    const read = /^-?\d+$/.test(value) && Object(schema).type !== 'string' ? Number(value) : value
    faults.push(...faultsBySchema(schema, read).map((fault) => `the header ${name}: ${fault} (is "${value}")`))
  }
  const undeclared = Object.keys(headers).filter((name) => documentedHeaders.has(name) && !declared.headers.has(name))
  return [...faults, ...undeclared.map((name) => `the header ${name} is sent but not declared`)]
}

function faultsOfBody(exchange: Exchange, declared: DeclaredAnswer): string[] {
  const { headers, body } = exchange
  if (declared.body === null) {
    const faults = body === '' ? [] : ['there is a body, but none is declared']
    return headers['content-type'] === undefined ? faults : [...faults, 'there is a content type, but no body']
  }
  if (exchange.status >= 400) return faultsOfErrorBody(exchange, declared.codes)
  if (declared.otherType !== null) {
    return headers['content-type'] === declared.otherType ? [] : [`the content type is "${headers['content-type']}"`]
  }
  return faultsOfJson(exchange, declared.body)
}

function faultsOfErrorBody(exchange: Exchange, codes?: readonly string[]): string[] {
  const faults = faultsOfJson(exchange, errorSchema)
  if (faults.length > 0) return faults
  const { code, requestId } = JSON.parse(exchange.body).error
  if (codes !== undefined && !codes.includes(code)) faults.push(`the code ${code} is not declared for this status`)
  if (requestId !== exchange.headers['x-request-id'])
    faults.push('the request id of the body is not that of the header')
  return faults
}

function faultsOfJson({ headers, body }: Exchange, schema: Schema): string[] {
  const type = headers['content-type'] ?? ''
  if (!/^application\/json(; ?charset=utf-8)?$/i.test(type)) return [`the content type is "${type}"`]
  try {
    return faultsBySchema(schema, JSON.parse(body))
  } catch {
    return ['the body is not JSON']
  }
}
