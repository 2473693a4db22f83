import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { TemplateService } from '../../templates/service.ts'
import type { Endpoint } from '../route-handler.ts'
import { createRenderingTurns } from '../turns.ts'

export function templateRoutes(templates: TemplateService, endpoint: Endpoint) {
  const inTurnsOfRendering = createRenderingTurns(2)
  return initServer().router(contract.templates, {
    create: inTurnsOfRendering(
      endpoint(async ({ body }, { handle, scope }) => ({
        status: 201,
        body: await templates.create(handle, scope.accountId, body),
      })),
      ({ body }) => typeof body.mjml === 'string',
    ),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await templates.list(handle, scope.accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await templates.get(handle, scope.accountId, params.id),
    })),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await templates.update(handle, scope.accountId, params.id, body),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await templates.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
    publish: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await templates.publish(handle, scope, params.id),
    })),
    versions: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: { data: await templates.versions(handle, scope.accountId, params.id) },
    })),
    render: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await templates.preview(handle, scope.accountId, { ...body, id: params.id }),
    })),
  })
}
