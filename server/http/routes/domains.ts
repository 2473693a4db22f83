import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { DomainService } from '../../domains/service.ts'
import type { Endpoint } from '../endpoint.ts'

export function domainRoutes(domains: DomainService, endpoint: Endpoint) {
  return initServer().router(contract.domains, {
    create: endpoint(async ({ body }, { handle, accountId }) => ({
      status: 201,
      body: await domains.create(handle, accountId, body),
    })),
    list: endpoint(async ({ query }, { handle, accountId }) => ({
      status: 200,
      body: await domains.list(handle, accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await domains.get(handle, accountId, params.id),
    })),
    delete: endpoint(async ({ params }, { handle, accountId }) => {
      await domains.delete(handle, accountId, params.id)
      return { status: 204, body: undefined }
    }),
    verify: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await domains.verify(handle, accountId, params.id),
    })),
  })
}
