import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { WebhookService } from '../../webhooks/service.ts'
import type { Endpoint } from '../endpoint.ts'

export function webhookRoutes(webhooks: WebhookService, endpoint: Endpoint) {
  return initServer().router(contract.webhooks, {
    create: endpoint(async ({ body }, { handle, accountId }) => ({
      status: 201,
      body: await webhooks.create(handle, accountId, body),
    })),
    list: endpoint(async ({ query }, { handle, accountId }) => ({
      status: 200,
      body: await webhooks.list(handle, accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await webhooks.get(handle, accountId, params.id),
    })),
    update: endpoint(async ({ params, body }, { handle, accountId }) => ({
      status: 200,
      body: await webhooks.update(handle, accountId, params.id, body),
    })),
    delete: endpoint(async ({ params }, { handle, accountId }) => {
      await webhooks.delete(handle, accountId, params.id)
      return { status: 204, body: undefined }
    }),
    test: endpoint(async ({ params, body }, { handle, accountId }) => ({
      status: 200,
      body: await webhooks.test(handle, accountId, params.id, body?.type),
    })),
    rotateSecret: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await webhooks.rotateSecret(handle, accountId, params.id),
    })),
  })
}
