import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { AuditLogService } from '../../audit-log/service.ts'
import type { Endpoint } from '../route-handler.ts'

export function auditLogRoutes(auditLog: AuditLogService, endpoint: Endpoint) {
  return initServer().router(contract.auditLog, {
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await auditLog.list(handle, scope.accountId, query),
    })),
  })
}
