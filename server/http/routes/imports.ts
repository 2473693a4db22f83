import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { Db } from '../../database/connection.ts'
import type { ImportService } from '../../imports/service.ts'
import type { Endpoint } from '../route-handler.ts'
import { streamedCsv } from '../streamed-csv.ts'

export function importRoutes(imports: ImportService, endpoint: Endpoint) {
  return initServer().router(contract.imports, {
    create: endpoint(async ({ req, query }, { handle, scope }) => ({
      status: 202,
      // A route without `Idempotency-Key` gets the database, never a transaction.
      body: await imports.create(handle as Db, scope, query, req),
    })),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await imports.list(handle, scope, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await imports.get(handle, scope, params.id),
    })),
    cancel: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await imports.cancel(handle, scope, params.id),
    })),
    failedRows: endpoint(async ({ req, res, params }, { handle, scope }) => ({
      status: 200,
      body: streamedCsv({ req, res }, await imports.failedRows(handle, scope, params.id), 'failed-rows.csv'),
    })),
  })
}
