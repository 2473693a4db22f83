import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { CampaignService } from '../../campaigns/service.ts'
import { startTimeOf } from '../../campaigns/start-time.ts'
import { authorize } from '../authenticate.ts'
import type { Endpoint } from '../route-handler.ts'
import { streamedCsv } from '../streamed-csv.ts'
import { createRenderingTurns } from '../turns.ts'

export function campaignRoutes(campaigns: CampaignService, endpoint: Endpoint) {
  const inTurnsOfRendering = createRenderingTurns(2)
  return initServer().router(contract.campaigns, {
    create: inTurnsOfRendering(
      endpoint(async ({ body }, { handle, scope }) => ({
        status: 201,
        body: await campaigns.create(handle, scope, body),
      })),
      ({ body }) => [body, ...(body.abTest?.variants ?? [])].some(({ content }) => typeof content?.mjml === 'string'),
    ),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await campaigns.list(handle, scope, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await campaigns.get(handle, scope, params.id),
    })),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await campaigns.update(handle, scope, params.id, body),
    })),
    delete: endpoint(async ({ params }, { handle, scope }) => {
      await campaigns.delete(handle, scope, params.id)
      return { status: 204, body: undefined }
    }),
    send: inTurnsOfRendering(
      endpoint(async ({ params, body }, { handle, scope }) => {
        return { status: 202, body: await campaigns.send(handle, scope, params.id, startTimeOf(body)) }
      }),
    ),
    pause: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await campaigns.pause(handle, scope, params.id),
    })),
    resume: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await campaigns.resume(handle, scope, params.id),
    })),
    cancel: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await campaigns.cancel(handle, scope, params.id),
    })),
    winner: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await campaigns.chooseWinner(handle, scope, params.id, body.variant),
    })),
    duplicate: endpoint(async ({ params }, { handle, scope }) => ({
      status: 201,
      body: await campaigns.duplicate(handle, scope, params.id),
    })),
    test: inTurnsOfRendering(
      endpoint(async ({ params, body }, { handle, scope, caller }) => {
        // The message contains the name, address and properties of the person.
        if (body.subscriberId !== undefined) authorize(caller, { permission: 'contacts:read', liveKeyOnly: false })
        return { status: 202, body: { emailIds: await campaigns.test(handle, scope, params.id, body) } }
      }),
    ),
    render: endpoint(async ({ params, body }, { handle, scope, caller }) => {
      if (body.subscriberId !== undefined) authorize(caller, { permission: 'contacts:read', liveKeyOnly: false })
      return { status: 200, body: await campaigns.render(handle, scope, params.id, body) }
    }),
    recipients: endpoint(async ({ params, query }, { handle, scope }) => ({
      status: 200,
      body: await campaigns.recipients(handle, scope, params.id, query),
    })),
    exportRecipients: endpoint(async ({ req, res, params }, { handle, scope }) => ({
      status: 200,
      body: streamedCsv({ req, res }, await campaigns.exportRecipients(handle, scope, params.id), 'recipients.csv'),
    })),
    statistics: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await campaigns.statistics(handle, scope, params.id),
    })),
  })
}
