import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { initContract } from '@ts-rest/core'
import { createExpressEndpoints } from '@ts-rest/express'
import express, { type ErrorRequestHandler } from 'express'
import { request } from 'undici'
import { z } from 'zod'
import type { Deprecation } from '../../contract/deprecations.ts'
import { errorTable } from '../../contract/errors.ts'
import { outcome } from '../../contract/route.ts'
import { readJsonBody } from '../../server/http/body.ts'
import type { Endpoint, EndpointContext, RouteGate } from '../../server/http/route-handler.ts'
import { DomainError } from '../../server/shared/errors.ts'

const c = initContract()
const answer = z.object({ accountId: z.string(), count: z.number() })
const body = z.object({ name: z.string().optional(), fail: z.boolean().optional() }).optional()

/** Of a whole operation. */
export const deprecation: Deprecation = {
  use: 'withWork',
  deprecatedAt: '2026-01-01T00:00:00Z',
  sunsetAt: '2027-01-01T00:00:00Z',
}

/** A small API with a route of each kind. */
export const contract = c.router({
  read: {
    method: 'GET',
    path: '/read',
    ...outcome({ operationId: 'read', tag: 'Webhooks', permission: 'webhooks:read' }, { 200: answer }),
  },
  live: {
    method: 'GET',
    path: '/live',
    ...outcome(
      { operationId: 'live', tag: 'Webhooks', permission: 'webhooks:read', liveKeyOnly: true },
      { 200: answer },
    ),
  },
  plain: {
    method: 'POST',
    path: '/plain',
    body,
    ...outcome({ operationId: 'plain', tag: 'Webhooks', permission: 'webhooks:write', hasBody: true }, { 200: answer }),
  },
  withWork: {
    method: 'POST',
    path: '/with-work',
    body,
    ...outcome(
      {
        operationId: 'withWork',
        tag: 'Webhooks',
        permission: 'webhooks:write',
        hasBody: true,
        idempotency: 'with-work',
      },
      { 201: answer },
    ),
  },
  afterWork: {
    method: 'POST',
    path: '/after-work',
    body,
    ...outcome(
      {
        operationId: 'afterWork',
        tag: 'Webhooks',
        permission: 'webhooks:write',
        hasBody: true,
        idempotency: 'after-work',
      },
      { 200: answer },
    ),
  },
  former: {
    method: 'POST',
    path: '/former',
    summary: 'As before',
    description: 'What `withWork` does.',
    body,
    ...outcome(
      {
        operationId: 'former',
        tag: 'Webhooks',
        permission: 'webhooks:write',
        hasBody: true,
        idempotency: 'with-work',
        deprecations: [deprecation],
      },
      { 201: answer },
    ),
  },
})

export type Work = (context: EndpointContext, body: { name?: string | undefined } | undefined) => Promise<number>
const told = z
  .object({
    accountId: z.string(),
    count: z.number(),
    error: z.object({ code: z.string(), message: z.string(), retryAfterSeconds: z.number().optional() }),
  })
  .partial()

export type Answer = { status: number; headers: Headers; body: z.infer<typeof told> }
export type SendOptions = { headers?: [name: string, value: string][]; body?: string }

export type Api = AsyncDisposable & {
  send(method: string, path: string, options?: SendOptions): Promise<Answer>
}

/** Serves the small API behind `gates`; what the routes do is `work`, which answers a number. */
export async function startApi({
  gates,
  endpoint,
  work,
}: {
  gates: readonly RouteGate[]
  endpoint: Endpoint
  work: Work
}): Promise<Api> {
  const app = express()
  const run = async (context: EndpointContext, body?: Parameters<Work>[1]) => ({
    accountId: context.scope.accountId,
    count: await work(context, body),
  })
  createExpressEndpoints(
    contract,
    {
      read: endpoint(async (_input, context) => ({ status: 200, body: await run(context) })),
      live: endpoint(async (_input, context) => ({ status: 200, body: await run(context) })),
      plain: endpoint(async ({ body }, context) => ({ status: 200, body: await run(context, body) })),
      withWork: endpoint(async ({ body }, context) => ({ status: 201, body: await run(context, body) })),
      afterWork: endpoint(async ({ body }, context) => ({ status: 200, body: await run(context, body) })),
      former: endpoint(async ({ body }, context) => ({ status: 201, body: await run(context, body) })),
    },
    app,
    { logInitialization: false, globalMiddleware: [...gates, readJsonBody(10_000)] },
  )
  app.use(tellError)
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo

  return {
    async send(method, path, { headers = [], body } = {}) {
      const type: [string, string][] = body === undefined ? [] : [['content-type', 'application/json']]
      const response = await request(`http://127.0.0.1:${port}${path}`, {
        method,
        // Flat, so that a header can be given twice.
        headers: [...headers, ...type].flat(),
        ...(body === undefined ? {} : { body }),
      })
      return {
        status: response.statusCode,
        headers: new Headers(Object.entries(response.headers).map(([name, value]) => [name, String(value)])),
        body: told.parse(await response.body.json()),
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

const tellError: ErrorRequestHandler = (error, _req, res, _next) => {
  const known = error instanceof DomainError
  res.status(known ? errorTable[error.code].status : 500).json({
    error: {
      code: known ? error.code : 'internal_error',
      message: error.message,
      retryAfterSeconds: known ? error.retryAfterSeconds : undefined,
    },
  })
}
