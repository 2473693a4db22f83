import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { ContactService } from '../../audiences/contact-service.ts'
import type { Endpoint } from '../route-handler.ts'

export function contactRoutes(contacts: ContactService, endpoint: Endpoint) {
  return initServer().router(contract.contacts, {
    add: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 201,
      body: await contacts.add(handle, scope, params.audienceId, body),
    })),
    list: endpoint(async ({ params, query }, { handle, scope }) => ({
      status: 200,
      body: await contacts.list(handle, scope.accountId, params.audienceId, query),
    })),
    listOfSubscriber: endpoint(async ({ params, query }, { handle, scope }) => ({
      status: 200,
      body: await contacts.listOfSubscriber(handle, scope.accountId, params.id, query),
    })),
    get: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await contacts.get(handle, scope.accountId, params),
    })),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await contacts.update(handle, scope, params, body),
    })),
    remove: endpoint(async ({ params }, { handle, scope }) => {
      await contacts.remove(handle, scope, params)
      return { status: 204, body: undefined }
    }),
  })
}
