import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { SubscriberService } from '../../subscribers/service.ts'
import type { Endpoint } from '../endpoint.ts'

export function subscriberRoutes(subscribers: SubscriberService, endpoint: Endpoint) {
  return initServer().router(contract.subscribers, {
    create: endpoint(async ({ body }, { handle, accountId }) => ({
      status: 201,
      body: await subscribers.create(handle, accountId, body),
    })),
    list: endpoint(async ({ query }, { handle, accountId }) => ({
      status: 200,
      body: await subscribers.list(handle, accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await subscribers.get(handle, accountId, params.id),
    })),
    update: endpoint(async ({ params, body }, { handle, accountId }) => ({
      status: 200,
      body: await subscribers.update(handle, accountId, params.id, body),
    })),
    delete: endpoint(async ({ params }, { handle, accountId }) => {
      await subscribers.delete(handle, accountId, params.id)
      return { status: 204, body: undefined }
    }),
    unsubscribe: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await subscribers.unsubscribe(handle, accountId, params.id),
    })),
  })
}
