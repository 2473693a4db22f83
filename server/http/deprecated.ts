import type { Response } from 'express'
import { brokenRule } from '../shared/errors.ts'
import type { RouteRequest } from './route-handler.ts'

/**
 * Sets the `Deprecation` and `Sunset` headers for the first deprecation of the route that the request uses: since when
 * it is deprecated, and until when it works at least. Source: RFC 9745 §2, RFC 8594 §3.
 */
export function tellDeprecated(req: RouteRequest & { query?: unknown }, res: Response): void {
  const given = Object(req.query)
  const { deprecations } = req.tsRestRoute.metadata
  const used = deprecations.find(({ parameter }) => parameter === undefined || Object.hasOwn(given, parameter))
  if (used === undefined) return
  res.setHeader('Deprecation', `@${Math.floor(Date.parse(used.deprecatedAt) / 1000)}`)
  res.setHeader('Sunset', new Date(used.sunsetAt).toUTCString())
}

type TimeFilter = { since?: string | undefined; from?: string | undefined }

/** Returns the query with `from`, the former name of `since`, renamed. Throws `rule_violation` when the two differ. */
export function withSince<Query extends TimeFilter>({ from, ...query }: Query): Omit<Query, 'from'> {
  if (from === undefined) return query
  if (query.since !== undefined && Date.parse(query.since) !== Date.parse(from)) {
    throw brokenRule('query.from', 'is the former name of since and has another value: give since alone')
  }
  return { ...query, since: from }
}
