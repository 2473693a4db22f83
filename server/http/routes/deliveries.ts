import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { DeliveryService } from '../../delivery/service.ts'
import type { Endpoint } from '../endpoint.ts'

export function deliveryRoutes(deliveries: DeliveryService, endpoint: Endpoint) {
  return initServer().router(contract.deliveries, {
    list: endpoint(async ({ params, query }, { handle, accountId }) => ({
      status: 200,
      body: await deliveries.list(handle, accountId, params.id, query),
    })),
    get: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await deliveries.get(handle, accountId, params.id, params.deliveryId),
    })),
    resend: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 202,
      body: await deliveries.resend(handle, accountId, params.id, params.deliveryId),
    })),
    recover: endpoint(async ({ params, body }, { handle, accountId }) => ({
      status: 202,
      body: await deliveries.recover(handle, accountId, params.id, new Date(body.since)),
    })),
  })
}
