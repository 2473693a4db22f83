import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { AudienceService } from '../../audiences/service.ts'
import type { Endpoint } from '../endpoint.ts'

export function audienceRoutes(audiences: AudienceService, endpoint: Endpoint) {
  return initServer().router(contract.audiences, {
    create: endpoint(async ({ body }, { handle, accountId }) => ({
      status: 201,
      body: await audiences.create(handle, accountId, body),
    })),
    list: endpoint(async ({ query }, { handle, accountId }) => ({
      status: 200,
      body: await audiences.list(handle, accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await audiences.get(handle, accountId, params.id),
    })),
    update: endpoint(async ({ params, body }, { handle, accountId }) => ({
      status: 200,
      body: await audiences.update(handle, accountId, params.id, body),
    })),
    delete: endpoint(async ({ params }, { handle, accountId }) => {
      await audiences.delete(handle, accountId, params.id)
      return { status: 204, body: undefined }
    }),
  })
}
