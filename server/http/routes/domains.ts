import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { DomainService } from '../../domains/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function domainRoutes(domains: DomainService, endpoint: Endpoint) {
  return initServer().router(contract.domains, {
    create: endpoint(async ({ body }, { handle, scope }) => ({
      status: 201,
      body: await domains.create(handle, scope, body),
    })),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await domains.list(handle, scope.accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await domains.get(handle, scope.accountId, params.id),
    })),
    deliverability: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await domains.deliverability(handle, scope, params.id),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await domains.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
    verify: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await domains.verify(handle, scope, params.id),
    })),
    rotateKeys: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await domains.rotateKeys(handle, scope, params.id, body ?? {}),
    })),
  })
}
