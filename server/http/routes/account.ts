import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { AccountUsageService } from '../../accounts/usage.ts'
import type { Endpoint } from '../route-handler.ts'

export function accountRoutes(usage: AccountUsageService, endpoint: Endpoint) {
  return initServer().router(contract.account, {
    get: endpoint(async (_input, { handle, scope }) => ({ status: 200, body: await usage.get(handle, scope) })),
  })
}
