import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { StatisticsService } from '../../statistics/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function statisticsRoutes(statistics: StatisticsService, endpoint: Endpoint) {
  return initServer().router(contract.statistics, {
    get: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await statistics.get(handle, scope, query),
    })),
    ranking: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await statistics.rank(handle, scope, query),
    })),
  })
}
