import type { DomainError, ErrorDetail } from '../shared/errors.ts'
import { closedAddress, closedDomain, closedInQuery, closedOrigin, closedValue } from './closed-values.ts'
import { type Keeping, type KeptFields, keptFields, keptInQuery, knownNames } from './kept-fields.ts'

/** Entries of a list of texts, and of a list of objects, that are kept. */
const maxEntries = 10
const maxObjects = 5
/** Objects kept of a body in all: conditions of segments stand in each other. */
const maxObjectsInAll = 100
/** Names of an object that are looked at. */
const maxNames = 100
/** Characters of the texts of one body together. */
const maxTexts = 4_000
/** Characters of a path. */
const maxPath = 500
/** Parameters of a query that are looked at. */
const maxParameters = 20
/** Entries of `details` of an error that are kept. */
const maxDetails = 10
/** Names in the path of one of them. */
const maxDepth = 8

/** Characters of texts, and objects, that may still be kept of a body. */
type Budget = { left: number; objects: number }

type TextKeeping = Exclude<Keeping, 'size' | KeptFields>

const closed: Readonly<Record<TextKeeping, (text: string) => string | null>> = {
  value: closedValue,
  address: closedAddress,
  domain: closedDomain,
  origin: closedOrigin,
}

/**
 * Returns what is kept of the body of a failed request, as JSON of at most 20,000 characters, or null when nothing is.
 * The work is bounded whatever the body is.
 *
 * @param body The body as it was parsed, before it was validated.
 */
export function reduceBody(operationId: string, body: unknown): string | null {
  const fields = Object.hasOwn(keptFields, operationId) ? keptFields[operationId] : undefined
  if (fields === undefined || body === undefined) return null
  return JSON.stringify(reduceObject(body, fields, { left: maxTexts, objects: maxObjectsInAll }))
}

function reduce(value: unknown, keeping: Keeping, budget: Budget): unknown {
  if (keeping === 'size') return sizeOf(value)
  if (typeof keeping !== 'string') {
    return Array.isArray(value)
      ? reduceList(value, maxObjects, (entry) => reduceObject(entry, keeping, budget))
      : reduceObject(value, keeping, budget)
  }
  return Array.isArray(value)
    ? reduceList(value, maxEntries, (entry) => reduceScalar(entry, keeping, budget))
    : reduceScalar(value, keeping, budget)
}

function reduceObject(value: unknown, fields: KeptFields, budget: Budget): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || budget.objects === 0) return sizeOf(value)
  budget.objects -= 1
  const kept: [string, unknown][] = []
  let looked = 0
  let unknown = 0
  for (const name in value) {
    if (++looked > maxNames) break
    const keeping = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (keeping === undefined) unknown += 1
    else kept.push([name, reduce((value as Record<string, unknown>)[name], keeping, budget)])
  }
  if (looked > maxNames) kept.push(['…', '[more fields]'])
  else if (unknown > 0) kept.push(['…', `[${counted(unknown, 'other field')}]`])
  return Object.fromEntries(kept)
}

function reduceList(list: readonly unknown[], max: number, reduceEntry: (entry: unknown) => unknown): unknown[] {
  const kept = list.slice(0, max).map(reduceEntry)
  return list.length > max ? [...kept, `[${list.length - max} more]`] : kept
}

function reduceScalar(value: unknown, keeping: TextKeeping, budget: Budget): unknown {
  if (typeof value === 'boolean' || value === null) return value
  const kept = typeof value === 'string' ? closed[keeping](value) : null
  if (kept === null || kept.length > budget.left) return sizeOf(value)
  budget.left -= kept.length
  return kept
}

/** Returns type and size of a value, without the value. */
function sizeOf(value: unknown): unknown {
  if (value === null) return null
  if (typeof value === 'string') return `[text, ${counted(value.length, 'character')}]`
  if (Array.isArray(value)) return `[list, ${counted(value.length, 'entry', 'entries')}]`
  return `[${typeof value}]`
}

function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}

/**
 * Returns the path of a request with what is kept of its parameters and its query. `…` stands for what is not kept.
 *
 * @param route The path of the operation, with its parameters in braces.
 * @param url The path with its query, as it was sent.
 */
export function reducePath(route: string, url: string): string {
  const at = url.indexOf('?')
  const sent = (at === -1 ? url : url.slice(0, at)).split('/', 20)
  const path = route
    .split('/')
    .map((segment, index) => (segment.startsWith('{') ? (keptParameter(sent[index] ?? '') ?? '…') : segment))
    .join('/')
  const query = at === -1 ? '' : keptQuery(url.slice(at + 1))
  return query === '' ? path : [path, query].join('?').slice(0, maxPath)
}

function keptParameter(segment: string): string | null {
  if (closedValue(segment) !== null) return segment
  // An address may have its `@` written as `%40`.
  const address = closedAddress(segment.replace('%40', '@'))
  return address === null ? null : encodeURIComponent(address)
}

const closedOfQuery = {
  value: closedInQuery,
  address: (_name: string, text: string) => closedAddress(text),
  size: () => null,
}

function keptQuery(query: string): string {
  const kept: string[] = []
  // The limit of the head of a request bounds the number of names.
  for (const [name, value] of new URLSearchParams(query)) {
    const keeping = keptInQuery.get(name)
    if (keeping === undefined) continue
    const text = closedOfQuery[keeping](name, value)
    kept.push(`${name}=${text === null ? '…' : encodeURIComponent(text)}`)
    if (kept.length === maxParameters) break
  }
  return kept.join('&')
}

/** The kept part of a detail of an error: its path, and its message if that cannot quote the request. */
export type KeptDetail = { path: string; message: string | null }

/** Returns the kept part of the `details` of an error as JSON, or null when it has none. */
export function reduceDetails({ details }: Pick<DomainError, 'details'>): string | null {
  if (details.length === 0) return null
  return JSON.stringify(details.slice(0, maxDetails).map(reduceDetail))
}

function reduceDetail({ path, message }: ErrorDetail): KeptDetail {
  return { path: reduceFaultPath(path), message: isFixedMessage(message) ? message : null }
}

/** Keeps a path of a fault up to the first name that the client may have made up. */
function reduceFaultPath(path: string): string {
  const [place = '', ...steps] = path.split(/(?=[.[])/, maxDepth)
  if (!/^(?:body|query|path|headers)$/.test(place)) return '…'
  const end = steps.findIndex((step) => !/^\[\d{1,6}\]$/.test(step) && !knownNames.has(step.slice(1)))
  return end === -1 ? [place, ...steps].join('') : [place, ...steps.slice(0, end), '.…'].join('')
}

const kinds = 'a string|a number|a whole number|true or false|a boolean|a list|an object|null'
const fixedMessage = new RegExp(
  [
    '^(?:is required|is not known here|must be given only once',
    String.raw`|must (?:be|have) (?:at least|at most|more than|less than) \d{1,9}(?: (?:character|octet|item|entrie)s?)?`,
    `|must be (?:${kinds})(?:, not (?:${kinds}))?)$`,
  ].join(''),
)

/** True for messages that say what is allowed and never quote what was sent. */
function isFixedMessage(message: string): boolean {
  return message.length <= 100 && fixedMessage.test(message)
}
