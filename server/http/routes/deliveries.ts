import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { DeliveryService } from '../../deliveries/service.ts'
import { withSince } from '../deprecated.ts'
import type { Endpoint } from '../route-handler.ts'

export function deliveryRoutes(deliveries: DeliveryService, endpoint: Endpoint) {
  return initServer().router(contract.deliveries, {
    list: endpoint(async ({ params, query }, { handle, scope }) => ({
      status: 200,
      body: await deliveries.list(handle, scope, params.id, withSince(query)),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await deliveries.get(handle, scope, params.id, params.deliveryId),
    })),
    getEvent: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await deliveries.getEvent(handle, scope, params.id, params.deliveryId),
    })),
    resend: endpoint(async ({ params }, { handle, scope }) => ({
      status: 202,
      body: await deliveries.resend(handle, scope, params.id, params.deliveryId),
    })),
    recover: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 202,
      body: await deliveries.recover(handle, scope, params.id, body),
    })),
    getRecovery: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await deliveries.getRecovery(handle, scope, params.id, params.recoveryId),
    })),
    listRecoveries: endpoint(async ({ params, query }, { handle, scope }) => ({
      status: 200,
      body: await deliveries.listRecoveries(handle, scope, params.id, query),
    })),
  })
}
