import { type AppRoute, type AppRouter, isAppRoute } from '@ts-rest/core'
import type { RequestValidationError } from '@ts-rest/express'
import { z } from 'zod'
import { brokenRules, DomainError, type ErrorDetail, invalidRequest } from '../shared/errors.ts'
import { type Issue, wordingOf } from './validation-messages.ts'

/**
 * Returns the same contract with schemas that validate synchronously. When a schema throws, zod's own `~standard` tries
 * again asynchronously, and nothing handles the promise: its rejection would end the process.
 */
export function validatedAtOnce<Router extends AppRouter>(router: Router): Router {
  const entries = Object.entries(router).map(([name, entry]) => [
    name,
    isAppRoute(entry) ? routeValidatedAtOnce(entry) : validatedAtOnce(entry),
  ])
  return Object.fromEntries(entries)
}

const validatedParts = ['pathParams', 'query', 'headers', 'body']

function routeValidatedAtOnce(route: AppRoute): AppRoute {
  const entries = Object.entries(route).map(([part, schema]) => [
    part,
    validatedParts.includes(part) && schema instanceof z.ZodType ? throwing(schema) : schema,
  ])
  return Object.fromEntries(entries)
}

/** Returns the schema with another `~standard`, which ts-rest validates with. */
function throwing(schema: z.ZodType): z.ZodType {
  const validate = (value: unknown) => {
    const { success, data, error } = schema.safeParse(value)
    return success ? { value: data } : { issues: error.issues }
  }
  return Object.create(schema, { '~standard': { value: { version: 1, vendor: 'postern', validate } } })
}

/**
 * Returns the error for a request that does not match its route: `not_found` when only the path is wrong, since no
 * object can have a malformed identifier; `rule_violation` when the published schema accepts the request; otherwise
 * `validation_error`. The last two list every error.
 */
export function refusalOf(error: RequestValidationError, route: AppRoute): DomainError {
  const path = detailsOf('path', error.pathParams)
  const others = [
    ...detailsOf('headers', error.headers),
    ...detailsOf('query', error.query),
    ...detailsOf('body', error.body),
  ]
  return others.length === 0 && path.length > 0
    ? nothingThere(route, error.pathParams?.issues ?? [])
    : refusalFor([...path, ...others])
}

/**
 * Validates a part of a body that the schema of the route does not, so that the part can be refused alone. Returns the
 * value or the error.
 *
 * @param at Path of the part in the body.
 */
export function readPart<T>(schema: z.ZodType<T>, value: unknown, at: readonly (string | number)[]): T | DomainError {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const issues = read.error.issues.map((issue) => ({ ...issue, path: [...at, ...issue.path] }))
  return refusalFor(detailsOf('body', { issues }))
}

type Fault = ErrorDetail & { isRule: boolean }

function refusalFor(faults: readonly Fault[]): DomainError {
  return faults.every(({ isRule }) => isRule) ? brokenRules(faults) : invalidRequest(faults)
}

type Issues = { readonly issues: readonly Issue[] }

function nothingThere(route: AppRoute, issues: readonly Issue[]): DomainError {
  const shape = route.pathParams instanceof z.ZodObject ? route.pathParams.shape : {}
  const forms = issues.flatMap(({ path: [name] = [] }) => {
    const schema: unknown = typeof name === 'string' ? shape[name] : undefined
    const example = schema instanceof z.ZodType ? schema.meta()?.example : undefined
    return typeof example === 'string' ? [`":${name}" must look like "${example}"`] : []
  })
  const hint = forms.length === 0 ? '' : `: in ${route.path}, ${forms.join(' and ')}`
  return new DomainError('not_found', `Nothing is at this path${hint}.`)
}

function detailsOf(place: 'path' | 'headers' | 'query' | 'body', error: Issues | null): Fault[] {
  return (error?.issues ?? []).flatMap(meant).flatMap((issue) => {
    const path = place + (issue.path ?? []).map(step).join('')
    return issue.code === 'unrecognized_keys'
      ? (issue.keys ?? []).map((name) => ({ path: path + step(name), message: 'is not known here', isRule: false }))
      : [{ path, message: wordingOf(issue), isRule: issue.params?.isRule === true }]
  })
}

/** Replaces the error of a union by those of the one member with the type of the value, if there is exactly one. */
function meant(issue: Issue): readonly Issue[] {
  const ofItsType = (issue.errors ?? []).filter((faults) => !faults.some(isOfOtherType))
  const [member, ...others] = ofItsType
  if (member === undefined || others.length > 0) return [issue]
  return member.flatMap((fault) => meant({ ...fault, path: [...(issue.path ?? []), ...(fault.path ?? [])] }))
}

function isOfOtherType({ code, path = [] }: Issue): boolean {
  return code === 'invalid_type' && path.length === 0
}

/** Returns `[1]` for an index and `.name` for a field. */
function step(segment: unknown): string {
  const key = typeof segment === 'object' && segment !== null && 'key' in segment ? segment.key : segment
  return typeof key === 'number' ? `[${key}]` : `.${String(key)}`
}
