import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { SuppressionService } from '../../suppressions/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function suppressionRoutes(suppressions: SuppressionService, endpoint: Endpoint) {
  return initServer().router(contract.suppressions, {
    create: endpoint(async ({ body }, { handle, scope }) => ({
      status: 201,
      body: await suppressions.create(handle, scope.accountId, body),
    })),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await suppressions.list(handle, scope.accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await suppressions.get(handle, scope.accountId, params.address),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await suppressions.delete(handle, scope, params.address)
      return { status: 204, body: undefined }
    }),
  })
}
