import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { PortalSessionService } from '../../portal-sessions/service.ts'
import type { Endpoint } from '../route-handler.ts'
import type { SessionEndpoints } from '../session-endpoint.ts'

export function portalSessionRoutes(
  portalSessions: PortalSessionService,
  endpoint: Endpoint,
  { open, inPortal }: SessionEndpoints,
) {
  return initServer().router(contract.portalSessions, {
    create: endpoint(async ({ body }, { handle, scope, caller }) => ({
      status: 201,
      body: await portalSessions.create(handle, scope, { ...body, permissions: caller.permissions }),
    })),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await portalSessions.list(handle, scope, query),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await portalSessions.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
    open: open(async ({ body }, { db, setPortalToken }) => {
      const opened = await portalSessions.open(db, body.code)
      setPortalToken(opened)
      return { status: 201, body: opened }
    }),
    current: inPortal(async (_input, { portal }) => ({ status: 200, body: portal.access })),
  })
}
