import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { EventService } from '../../events/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function eventRoutes(events: EventService, endpoint: Endpoint) {
  return initServer().router(contract.events, {
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await events.list(handle, scope, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await events.get(handle, scope, params.id),
    })),
    listTypes: endpoint(async () => ({ status: 200, body: { data: events.listTypes() } })),
  })
}
