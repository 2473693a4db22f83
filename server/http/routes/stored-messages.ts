import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import { written } from '../../lib/streamed-text.ts'
import type { CapturedMessageService, InboundMessageService } from '../../stored-messages/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function capturedMessageRoutes(messages: CapturedMessageService, endpoint: Endpoint) {
  return initServer().router(contract.capturedMessages, {
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await messages.list(handle, scope, query),
    })),
    get: endpoint(async ({ params }, { handle, scope, enterLarge }) => ({
      status: 200,
      body: written(await messages.get(handle, scope, params.id, enterLarge)),
    })),
    getAttachment: endpoint(async ({ params }, { handle, scope, enterLarge }) => ({
      status: 200,
      body: written(await messages.getAttachment(handle, scope, params, enterLarge)),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await messages.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
    deleteAll: endpoint(async (_input, { handle, scope }) => {
      await messages.deleteAll(handle, scope)
      return { status: 204, body: undefined }
    }),
  })
}

export function inboundMessageRoutes(messages: InboundMessageService, endpoint: Endpoint) {
  return initServer().router(contract.inboundMessages, {
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await messages.list(handle, scope, query),
    })),
    get: endpoint(async ({ params }, { handle, scope, enterLarge }) => ({
      status: 200,
      body: written(await messages.get(handle, scope, params.id, enterLarge)),
    })),
  })
}
