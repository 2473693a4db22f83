import type { IncomingMessage } from 'node:http'
import type { NextFunction, Response } from 'express'
import { type ErrorDetail, invalidRequest } from '../errors.ts'

type Routed = IncomingMessage & { url: string; query: object; tsRestRoute: { path: string; query?: unknown } }

/**
 * Refuses what the schema of a query cannot see, or not say well: keys given more than once, and any
 * key at all where the route takes none.
 */
export function checkQuery(req: Routed, _res: Response, next: NextFunction): void {
  if (req.url.includes('?')) {
    const faults = faultsOf(req.query, req.tsRestRoute.query !== undefined)
    if (faults.length > 0) throw invalidRequest(faults)
  }
  next()
}

function faultsOf(query: object, takesQuery: boolean): ErrorDetail[] {
  const faults: ErrorDetail[] = []
  for (const [key, value] of Object.entries(query)) {
    if (!takesQuery) faults.push({ path: `query.${key}`, message: 'is not known here' })
    else if (Array.isArray(value)) faults.push({ path: `query.${key}`, message: 'must be given only once' })
  }
  return faults
}
