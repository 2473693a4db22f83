import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { BrandService } from '../../accounts/brand.ts'
import type { AccountUsageService } from '../../accounts/usage.ts'
import type { Endpoint } from '../route-handler.ts'

export function accountRoutes(usage: AccountUsageService, endpoint: Endpoint) {
  return initServer().router(contract.account, {
    get: endpoint(async (_input, { handle, scope }) => ({ status: 200, body: await usage.get(handle, scope) })),
  })
}

export function brandRoutes(brands: BrandService, endpoint: Endpoint) {
  return initServer().router(contract.brands, {
    get: endpoint(async (_input, { handle, scope }) => ({
      status: 200,
      body: await brands.get(handle, scope.accountId),
    })),
    update: endpoint(async ({ body }, { handle, scope }) => ({
      status: 200,
      body: await brands.update(handle, scope.accountId, body),
    })),
  })
}
