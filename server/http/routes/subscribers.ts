import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { SubscriberService } from '../../subscribers/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function subscriberRoutes(subscribers: SubscriberService, endpoint: Endpoint) {
  return initServer().router(contract.subscribers, {
    create: endpoint(async ({ body }, { handle, scope }) => ({
      status: 201,
      body: await subscribers.create(handle, scope, body),
    })),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await subscribers.list(handle, scope.accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await subscribers.get(handle, scope.accountId, params.id),
    })),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await subscribers.update(handle, scope, params.id, body),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await subscribers.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
    unsubscribe: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await subscribers.unsubscribe(handle, scope, params.id),
    })),
  })
}
