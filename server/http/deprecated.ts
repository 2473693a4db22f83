import type { Response } from 'express'
import { deprecationsOf } from '../../contract/deprecations.ts'
import { brokenRule } from '../errors.ts'
import type { RouteRequest } from './endpoint.ts'

/**
 * Tells of the deprecated parameters a request used: since when, and until when they work at least. Of several,
 * the first to go counts. Source: RFC 9745 §2, RFC 8594 §3.
 */
export function tellDeprecated(req: RouteRequest & { query?: unknown }, res: Response): void {
  const given = Object(req.query)
  const used = deprecationsOf(req.tsRestRoute.metadata.operationId).filter(({ parameter }) =>
    Object.hasOwn(given, parameter),
  )
  if (used.length === 0) return
  const since = Math.min(...used.map(({ deprecatedAt }) => Date.parse(deprecatedAt)))
  const sunset = Math.min(...used.map(({ sunsetAt }) => Date.parse(sunsetAt)))
  res.setHeader('Deprecation', `@${Math.floor(since / 1000)}`)
  res.setHeader('Sunset', new Date(sunset).toUTCString())
}

type TimeFilter = { since?: string | undefined; from?: string | undefined }

/** A query by its present names: `from` is the former name of `since`. */
export function withSince<Query extends TimeFilter>({ from, ...query }: Query): Omit<Query, 'from'> {
  if (from === undefined) return query
  if (query.since !== undefined && Date.parse(query.since) !== Date.parse(from)) {
    throw brokenRule('query.from', 'is the former name of since and has another value: give since alone')
  }
  return { ...query, since: from }
}
