import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { EventService } from '../../events/service.ts'
import type { Endpoint } from '../endpoint.ts'

export function eventRoutes(events: EventService, endpoint: Endpoint) {
  return initServer().router(contract.events, {
    list: endpoint(async ({ query }, { handle, accountId }) => ({
      status: 200,
      body: await events.list(handle, accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await events.get(handle, accountId, params.id),
    })),
    listTypes: endpoint(async () => ({ status: 200, body: { data: events.listTypes() } })),
  })
}
