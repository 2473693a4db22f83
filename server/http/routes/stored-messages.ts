import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { CapturedMessageService, InboundMessageService } from '../../mail/mailbox/service.ts'
import type { Endpoint } from '../endpoint.ts'

export function capturedMessageRoutes(messages: CapturedMessageService, endpoint: Endpoint) {
  return initServer().router(contract.capturedMessages, {
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await messages.list(handle, scope, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await messages.get(handle, scope, params.id),
    })),
  })
}

export function inboundMessageRoutes(messages: InboundMessageService, endpoint: Endpoint) {
  return initServer().router(contract.inboundMessages, {
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await messages.list(handle, scope, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await messages.get(handle, scope, params.id),
    })),
  })
}
