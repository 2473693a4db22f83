import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { CapturedMessageService, InboundMessageService } from '../../mail/mailbox/service.ts'
import type { Endpoint } from '../endpoint.ts'

export function capturedMessageRoutes(messages: CapturedMessageService, endpoint: Endpoint) {
  return initServer().router(contract.capturedMessages, {
    list: endpoint(async ({ query }, { handle, accountId }) => ({
      status: 200,
      body: await messages.list(handle, accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await messages.get(handle, accountId, params.id),
    })),
  })
}

export function inboundMessageRoutes(messages: InboundMessageService, endpoint: Endpoint) {
  return initServer().router(contract.inboundMessages, {
    list: endpoint(async ({ query }, { handle, accountId }) => ({
      status: 200,
      body: await messages.list(handle, accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await messages.get(handle, accountId, params.id),
    })),
  })
}
