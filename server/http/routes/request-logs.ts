import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { RequestLogService } from '../../request-logs/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function requestLogRoutes(requestLogs: RequestLogService, endpoint: Endpoint) {
  return initServer().router(contract.requestLogs, {
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await requestLogs.list(handle, scope, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await requestLogs.get(handle, scope, params.id),
    })),
  })
}
