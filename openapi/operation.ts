import type {
  MediaTypeObject,
  OperationObject,
  ParameterObject,
  ReferenceObject,
  RequestBodyObject,
  ResponseObject,
  ResponsesObject,
  SecurityRequirementObject,
} from 'openapi3-ts/oas31'
import type { z } from 'zod'
import type { Deprecation } from '../contract/deprecations.ts'
import { deepParameters } from '../contract/metadata.ts'
import type { RouteMetadata } from '../contract/route.ts'
import { errorAnswers, errorResponseRef } from './errors.ts'
import { successHeaders } from './headers.ts'
import { linksOf } from './links.ts'
import { accountRef, bearer, dashboardRef, idempotencyKeyRef, lastEventId, portal, session } from './parameters.ts'
import type { Route } from './routes.ts'
import type { SchemaWriter } from './schemas.ts'

/** What an operation needs to know of the document it stands in. */
export type Surroundings = { schemas: SchemaWriter; operationIds: ReadonlySet<string> }

function descriptionOf({ description, metadata }: Route): string {
  const deprecation = metadata.deprecations.find(({ parameter }) => parameter === undefined)
  return [description, neededBy(metadata), ...(deprecation ? [hintOf(deprecation)] : [])].join('\n\n')
}

function neededBy(metadata: RouteMetadata): string {
  return `${neededPermission(metadata)}${metadata.inPortal && metadata.caller !== 'portal' ? ' Part of the portal.' : ''}`
}

function neededPermission({ caller, permission, liveKeyOnly }: RouteMetadata): string {
  if (caller === 'none') return 'Needs no key.'
  if (caller === 'portal') return 'Needs a session of the portal.'
  if (caller === 'operator') return 'Needs a session of the dashboard of a user who is an operator of the service.'
  if (permission === null) return 'Needs a session of the dashboard.'
  if (caller === 'session') return `Needs a session of the dashboard, and the permission \`${permission}\`.`
  return `Needs the permission \`${permission}\`${liveKeyOnly ? ' and a live key' : ''}.`
}

function securityOf({ caller, permission }: RouteMetadata): SecurityRequirementObject[] {
  if (caller === 'none') return []
  if (caller === 'portal') return [{ [portal]: [] }]
  return [
    { [caller === 'session' || caller === 'operator' ? session : bearer]: permission === null ? [] : [permission] },
  ]
}

/** The headers by which a request of the dashboard names itself, and the account it works on. */
function headersOfDashboard({ caller, permission }: RouteMetadata): ReferenceObject[] {
  if (caller !== 'session' && caller !== 'operator' && caller !== 'none') return []
  return permission === null ? [dashboardRef] : [dashboardRef, accountRef]
}

function hintOf({ use, sunsetAt }: Deprecation): string {
  return `Deprecated: use \`${use}\`. Works until ${sunsetAt.slice(0, 10)} at least.`
}

/** Returns the default of a parameter. zod does not write it for a schema that also converts. */
function defaultOf(schema: z.ZodType): { default?: unknown } {
  const { data } = schema.safeParse(undefined)
  return data === undefined ? {} : { default: data }
}

/** What is said of a deprecated parameter beside its description. */
function deprecationOf({ metadata, query }: Route, name: string): Partial<ParameterObject> {
  const found = metadata.deprecations.find(({ parameter }) => parameter === name)
  if (found === undefined) return {}
  return { description: `${query[name]?.description ?? ''} ${hintOf(found)}`, deprecated: true }
}

function parametersOf(route: Route, schemas: SchemaWriter): (ParameterObject | ReferenceObject)[] {
  const write = (place: 'path' | 'query', shape: Record<string, z.ZodType>): ParameterObject[] =>
    Object.entries(shape).map(([name, schema]) => ({
      name,
      in: place,
      required: place === 'path' || !schema.safeParse(undefined).success,
      ...(place === 'query' && deepParameters.includes(name) && { style: 'deepObject' as const, explode: true }),
      ...(schema.description && { description: schema.description }),
      ...deprecationOf(route, name),
      schema: Object.assign(
        schemas.parameter(schema, `${route.metadata.operationId} ${place} ${name}`),
        defaultOf(schema),
      ),
    }))
  return [
    ...write('path', route.pathParams),
    ...write('query', route.query),
    ...headersOfDashboard(route.metadata),
    ...(route.metadata.idempotency === 'none' ? [] : [idempotencyKeyRef]),
    ...(route.successes.some(([, body]) => body?.contentType === 'text/event-stream') ? [lastEventId] : []),
  ]
}

function json(schema: MediaTypeObject['schema']): { 'application/json': MediaTypeObject } {
  return { 'application/json': schema === undefined ? {} : { schema } }
}

function requestBodyOf(route: Route, schemas: SchemaWriter): RequestBodyObject | null {
  const { takesFile } = route.metadata
  if (takesFile !== null) {
    const schema = { type: 'string' as const, description: 'The file.' }
    // Generators take it for bytes then; OpenAPI 3.1 leaves the keyword free for annotation.
    const ofBytes = { ...schema, format: 'binary' }
    const mediaType = (type: string) => ({ schema: type.startsWith('text/') ? schema : ofBytes })
    return { required: true, content: Object.fromEntries(takesFile.map((type) => [type, mediaType(type)])) }
  }
  if (route.body === null) return null
  return {
    required: !route.body.safeParse(undefined).success,
    content: json(schemas.input(route.body, `${route.metadata.operationId} body`)),
  }
}

const meaningOfSuccess: Record<number, string> = {
  200: 'Done.',
  201: 'Created.',
  202: 'Accepted: the work goes on in the background.',
  204: 'Done; there is no body.',
}

function successOf(route: Route, [status, body]: Route['successes'][number], around: Surroundings): ResponseObject {
  const { operationId, idempotency, deprecations } = route.metadata
  const links = linksOf(operationId, around.operationIds)
  return {
    description: body?.schema.description ?? meaningOfSuccess[status] ?? 'Done.',
    headers: successHeaders({
      idempotent: idempotency !== 'none',
      hasDeprecated: deprecations.length > 0,
    }),
    ...(body && {
      content: { [body.contentType]: { schema: around.schemas.output(body.schema, `${operationId} ${status}`) } },
    }),
    ...(Object.keys(links).length > 0 && { links }),
  }
}

function responsesOf(route: Route, around: Surroundings): ResponsesObject {
  return {
    ...Object.fromEntries(route.successes.map((success) => [success[0], successOf(route, success, around)])),
    ...Object.fromEntries(
      errorAnswers(route.metadata.errors).map((answer) => [answer.status, errorResponseRef(answer)]),
    ),
  }
}

/** The operation of the document that describes `route`. */
export function operationOf(route: Route, around: Surroundings): OperationObject {
  const { operationId, tag, permission, deprecations } = route.metadata
  const parameters = parametersOf(route, around.schemas)
  const requestBody = requestBodyOf(route, around.schemas)
  return {
    operationId,
    tags: [tag],
    summary: route.summary,
    description: descriptionOf(route),
    ...(deprecations.some(({ parameter }) => parameter === undefined) && { deprecated: true }),
    security: securityOf(route.metadata),
    ...(permission !== null && { 'x-required-permission': permission }),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    responses: responsesOf(route, around),
  }
}
