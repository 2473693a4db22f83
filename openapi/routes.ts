import { type AppRoute, type AppRouter, isAppRoute, isAppRouteNoBody, isAppRouteOtherResponse } from '@ts-rest/core'
import { z } from 'zod'
import type { RouteMetadata } from '../contract/route.ts'

/** A route of the contract, with its schemas as zod schemas. */
export type Route = {
  metadata: RouteMetadata
  method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** With `{name}` for each path parameter. */
  path: string
  summary: string
  description: string
  pathParams: Record<string, z.ZodType>
  query: Record<string, z.ZodType>
  body: z.ZodType | null
  /** The answers below 400, by status; `null` for one without a body. */
  successes: [status: number, body: Body | null][]
}

/** What an answer has for a body. */
export type Body = { schema: z.ZodType; contentType: string }

function asZod(schema: unknown): z.ZodType | null {
  return schema instanceof z.ZodType ? schema : null
}

function shapeOf(schema: unknown): Record<string, z.ZodType> {
  return schema instanceof z.ZodObject ? schema.shape : {}
}

function hasMetadata(route: AppRoute): route is AppRoute & { metadata: RouteMetadata } {
  return typeof route.metadata === 'object' && route.metadata !== null && 'operationId' in route.metadata
}

function successesOf(route: AppRoute): Route['successes'] {
  return Object.entries(route.responses)
    .map(([status, body]) => [Number(status), body] as const)
    .filter(([status]) => status < 400)
    .map(([status, body]) => [status, bodyOf(body)])
}

function bodyOf(response: AppRoute['responses'][number]): Body | null {
  if (isAppRouteNoBody(response)) return null
  const isOther = response !== undefined && isAppRouteOtherResponse(response)
  const { contentType, body } = isOther ? Object(response) : { contentType: 'application/json', body: response }
  const schema = asZod(body)
  return schema === null ? null : { schema, contentType }
}

const methods = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'delete' } as const

function routeOf(route: AppRoute): Route {
  const { method, path, summary, description } = route
  const name = `${method} ${path}`
  if (!hasMetadata(route)) throw new Error(`${name} has no metadata: give it \`...outcome(…)\` of contract/route.ts`)
  if (!summary || !description) throw new Error(`${name} has no summary or no description: write them in the contract`)
  return {
    metadata: route.metadata,
    method: methods[method],
    path: path.replaceAll(/:(\w+)/g, '{$1}'),
    summary,
    description,
    pathParams: shapeOf(route.pathParams),
    query: shapeOf(route.query),
    body: 'body' in route ? asZod(route.body) : null,
    successes: successesOf(route),
  }
}

/**
 * Every route of a contract, in its order.
 *
 * Throws for a route without metadata, summary or description.
 */
export function routesOf(contract: AppRouter): Route[] {
  return Object.values(contract).flatMap((entry) => (isAppRoute(entry) ? [routeOf(entry)] : routesOf(entry)))
}
