import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { SegmentService } from '../../segments/service.ts'
import type { Endpoint } from '../route-handler.ts'
import { streamedCsv } from '../streamed-csv.ts'

export function segmentRoutes(segments: SegmentService, endpoint: Endpoint) {
  return initServer().router(contract.segments, {
    create: endpoint(async ({ body }, { handle, scope }) => ({
      status: 201,
      body: await segments.create(handle, scope.accountId, body),
    })),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await segments.list(handle, scope.accountId, query),
    })),
    preview: endpoint(async ({ body }, { handle, scope }) => ({
      status: 200,
      body: await segments.preview(handle, scope.accountId, body),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await segments.get(handle, scope.accountId, params.id),
    })),
    count: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await segments.count(handle, scope.accountId, params.id),
    })),
    contacts: endpoint(async ({ params, query }, { handle, scope }) => ({
      status: 200,
      body: await segments.contacts(handle, scope.accountId, params.id, query),
    })),
    exportCsv: endpoint(async ({ req, res, params }, { handle, scope }) => ({
      status: 200,
      body: streamedCsv({ req, res }, await segments.exportCsv(handle, scope.accountId, params.id), 'contacts.csv'),
    })),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await segments.update(handle, scope.accountId, params.id, body),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await segments.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
  })
}
