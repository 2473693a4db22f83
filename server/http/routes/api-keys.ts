import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { AccountKeyService } from '../../api-keys/account-keys.ts'
import type { Endpoint } from '../route-handler.ts'

export function apiKeyRoutes(apiKeys: AccountKeyService, endpoint: Endpoint) {
  return initServer().router(contract.apiKeys, {
    create: endpoint(async ({ body }, { handle, scope, caller }) => ({
      status: 201,
      body: await apiKeys.create(handle, scope, { ...caller.limits, permissions: caller.permissions }, body),
    })),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await apiKeys.list(handle, scope, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await apiKeys.get(handle, scope, params.id),
    })),
    revoke: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await apiKeys.revoke(handle, scope, params.id),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await apiKeys.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
  })
}
