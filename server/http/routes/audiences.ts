import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { AudienceService } from '../../audiences/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function audienceRoutes(audiences: AudienceService, endpoint: Endpoint) {
  return initServer().router(contract.audiences, {
    create: endpoint(async ({ body }, { handle, scope }) => ({
      status: 201,
      body: await audiences.create(handle, scope, body),
    })),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await audiences.list(handle, scope.accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await audiences.get(handle, scope.accountId, params.id),
    })),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await audiences.update(handle, scope, params.id, body),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await audiences.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
  })
}
