import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { EventService } from '../../events/service.ts'
import type { FollowEvents } from '../event-stream.ts'
import type { Endpoint } from '../route-handler.ts'

export function eventRoutes(events: EventService, { endpoint, follow }: { endpoint: Endpoint; follow: FollowEvents }) {
  return initServer().router(contract.events, {
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await events.list(handle, scope, query),
    })),
    stream: endpoint(async ({ req, res, query }, { scope }) => ({
      status: 200,
      // A stream is piped into the answer, and is the string of the contract there.
      body: (await follow({ req, res }, scope, query)) as unknown as string,
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await events.get(handle, scope, params.id),
    })),
    listTypes: endpoint(async () => ({ status: 200, body: { data: events.listTypes() } })),
  })
}
