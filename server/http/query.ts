import type { IncomingMessage } from 'node:http'
import { parse } from 'node:querystring'
import type { NextFunction, Response } from 'express'
import { z } from 'zod'
import { deepParameters } from '../../contract/metadata.ts'
import { type ErrorDetail, invalidRequest } from '../shared/errors.ts'

const deepKey = /^(\w+)\[([^[\]]*)\]$/

/**
 * Parses a query: `a=1`, once or several times, and `metadata[a]=1` for parameters that are objects (OpenAPI style
 * `deepObject`). Brackets anywhere else stay part of the name.
 */
export function parseQuery(text: string): Record<string, unknown> {
  const query: Record<string, unknown> = parse(text)
  for (const [key, value] of Object.entries(query)) {
    const [, name = '', inner = ''] = deepKey.exec(key) ?? []
    if (!deepParameters.includes(name)) continue
    const deep = query[name] ?? Object.create(null)
    // When the parameter is also given as plain text, this one keeps its name, which is unknown.
    if (typeof deep !== 'object' || Array.isArray(deep)) continue
    deep[inner] = value
    query[name] = deep
    delete query[key]
  }
  return query
}

type Routed = IncomingMessage & { url: string; query: object; tsRestRoute: { path: string; query?: unknown } }

/**
 * Refuses what the schema of a query cannot detect or describe well: repeated parameters, pairs without a name, and any
 * parameter of a route that takes none.
 */
export function checkQuery(req: Routed, _res: Response, next: NextFunction): void {
  if (req.url.includes('?')) {
    const { query } = req.tsRestRoute
    const known = query instanceof z.ZodObject ? Object.keys(query.shape) : []
    const faults = faultsOf(req.query, { takesQuery: query !== undefined, known })
    if (faults.length > 0) throw invalidRequest(faults)
  }
  next()
}

type Taken = { takesQuery: boolean; known: readonly string[] }

function faultsOf(query: object, { takesQuery, known }: Taken): ErrorDetail[] {
  const faults: ErrorDetail[] = []
  for (const [key, value] of Object.entries(query)) {
    if (!takesQuery) faults.push({ path: `query.${key}`, message: 'is not known here' })
    else if (Array.isArray(value)) faults.push({ path: `query.${key}`, message: 'must be given only once' })
    else if (typeof value === 'string' && deepParameters.includes(key) && known.includes(key))
      faults.push({ path: `query.${key}`, message: `must be given as ${key}[name]=value` })
    else if (typeof value === 'object' && value !== null) {
      for (const [inner, one] of Object.entries(value)) {
        if (Array.isArray(one)) faults.push({ path: `query.${key}.${inner}`, message: 'must be given only once' })
      }
    }
  }
  return faults
}
