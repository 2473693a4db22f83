import type { AppRouter } from '@ts-rest/core'
import { type OpenAPIObject, OpenApiBuilder, type PathItemObject } from 'openapi3-ts/oas31'
import { type ErrorCode, errorBody } from '../contract/errors.ts'
import { eventTypes } from '../contract/event-types.ts'
import { tags } from '../contract/route.ts'
import { errorAnswers, errorExample, errorResponse } from './errors.ts'
import { pushedTag, webhookOf } from './events.ts'
import { headerComponents } from './headers.ts'
import { introduction } from './introduction.ts'
import { operationOf } from './operation.ts'
import {
  bearer,
  dashboardHeaders,
  idempotencyKey,
  portal,
  portalScheme,
  securityScheme,
  session,
  sessionScheme,
} from './parameters.ts'
import { type Route, routesOf } from './routes.ts'
import { createSchemaWriter, type SchemaWriter } from './schemas.ts'

function addPaths(builder: OpenApiBuilder, routes: Route[], schemas: SchemaWriter): void {
  const operationIds = new Set(routes.map((route) => route.metadata.operationId))
  for (const [path, group] of Map.groupBy(routes, (route) => route.path)) {
    const item: PathItemObject = {}
    for (const route of group) item[route.method] = operationOf(route, { schemas, operationIds })
    builder.addPath(path, item)
  }
}

function addErrors(builder: OpenApiBuilder, routes: Route[], schemas: SchemaWriter): void {
  const codes = new Set<ErrorCode>()
  const names = new Set<string>()
  for (const answer of routes.flatMap((route) => errorAnswers(route.metadata.errors))) {
    if (names.has(answer.name)) continue
    names.add(answer.name)
    for (const code of answer.codes) codes.add(code)
    builder.addResponse(answer.name, errorResponse(answer, schemas.output(errorBody, `response ${answer.name}`)))
  }
  for (const code of codes) builder.addExample(code, errorExample(code))
}

export type DocumentOptions = {
  contract: AppRouter
  version: string
  /** How clients reach the service. Default `/`: where the document came from. */
  serverUrl?: string
}

/**
 * The OpenAPI 3.1 document of a contract. Pure: the same contract and version give the same
 * document, key for key.
 *
 * Throws for a route that lacks what the document needs (metadata, summary, description).
 */
export function createDocument({ contract, version, serverUrl = '/' }: DocumentOptions): OpenAPIObject {
  const routes = routesOf(contract)
  const schemas = createSchemaWriter()
  const builder = OpenApiBuilder.create({
    openapi: '3.1.0',
    info: {
      title: 'Postern',
      version,
      description: introduction,
      contact: { name: 'Whoever runs this service' },
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: serverUrl, description: 'The service that serves this document.' }],
    tags: [...Object.entries(tags).map(([name, description]) => ({ name, description })), pushedTag],
  })
  addPaths(builder, routes, schemas)
  for (const type of eventTypes.values()) builder.addWebhook(type.name, webhookOf(type, schemas))
  addErrors(builder, routes, schemas)
  for (const [name, header] of Object.entries(headerComponents)) builder.addHeader(name, header)
  builder.addParameter('IdempotencyKey', idempotencyKey)
  for (const [name, header] of Object.entries(dashboardHeaders)) builder.addParameter(name, header)
  builder.addSecurityScheme(bearer, securityScheme)
  builder.addSecurityScheme(session, sessionScheme)
  builder.addSecurityScheme(portal, portalScheme)
  for (const [name, schema] of schemas.components()) builder.addSchema(name, schema)
  return builder.getSpec()
}
