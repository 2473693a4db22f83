import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { SuppressionService } from '../../suppressions/service.ts'
import type { Endpoint } from '../endpoint.ts'

export function suppressionRoutes(suppressions: SuppressionService, endpoint: Endpoint) {
  return initServer().router(contract.suppressions, {
    create: endpoint(async ({ body }, { handle, accountId }) => ({
      status: 201,
      body: await suppressions.create(handle, accountId, body),
    })),
    list: endpoint(async ({ query }, { handle, accountId }) => ({
      status: 200,
      body: await suppressions.list(handle, accountId, query),
    })),
    delete: endpoint(async ({ params }, { handle, accountId }) => {
      await suppressions.delete(handle, accountId, params.address)
      return { status: 204, body: undefined }
    }),
  })
}
