import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { ContactPropertyService } from '../../subscribers/property-service.ts'
import type { Endpoint } from '../route-handler.ts'

export function contactPropertyRoutes(properties: ContactPropertyService, endpoint: Endpoint) {
  return initServer().router(contract.contactProperties, {
    create: endpoint(async ({ body }, { handle, scope }) => ({
      status: 201,
      body: await properties.create(handle, scope.accountId, body),
    })),
    list: endpoint(async (_, { handle, scope }) => ({
      status: 200,
      body: { data: await properties.list(handle, scope.accountId) },
    })),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await properties.update(handle, scope.accountId, params.key, body),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await properties.delete(handle, scope, params.key)
      return { status: 204, body: undefined }
    }),
  })
}
