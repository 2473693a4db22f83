import type { TsRestRequestHandler } from '@ts-rest/express'
import type { contract } from '../../contract/index.ts'
import type { ErrorDetail } from '../errors.ts'
import { invalidRequest } from './validation.ts'

/**
 * Refuses what the schema of a query cannot see, or not say well: keys given more than once, and any
 * key at all where the route takes none.
 */
export const checkQuery: TsRestRequestHandler<typeof contract> = (req, _res, next) => {
  if (!req.url.includes('?')) return next()
  const faults = faultsOf(req.query, 'query' in req.tsRestRoute)
  next(faults.length === 0 ? undefined : invalidRequest(faults))
}

function faultsOf(query: object, takesQuery: boolean): ErrorDetail[] {
  const faults: ErrorDetail[] = []
  for (const [key, value] of Object.entries(query)) {
    if (!takesQuery) faults.push({ path: `query.${key}`, message: 'is not known here' })
    else if (Array.isArray(value)) faults.push({ path: `query.${key}`, message: 'must be given only once' })
  }
  return faults
}
