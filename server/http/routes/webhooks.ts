import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { WebhookService } from '../../webhooks/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function webhookRoutes(webhooks: WebhookService, endpoint: Endpoint) {
  return initServer().router(contract.webhooks, {
    create: endpoint(async ({ body }, { handle, scope }) => ({
      status: 201,
      body: await webhooks.create(handle, scope, body),
    })),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await webhooks.list(handle, scope, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await webhooks.get(handle, scope, params.id),
    })),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await webhooks.update(handle, scope, params.id, body),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await webhooks.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
    test: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await webhooks.test(handle, scope, params.id, body?.type),
    })),
    rotateSecret: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await webhooks.rotateSecret(handle, scope, params.id),
    })),
  })
}
