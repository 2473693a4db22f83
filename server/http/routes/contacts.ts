import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { ContactService } from '../../audiences/contact-service.ts'
import type { Endpoint } from '../endpoint.ts'

export function contactRoutes(contacts: ContactService, endpoint: Endpoint) {
  return initServer().router(contract.contacts, {
    add: endpoint(async ({ params, body }, { handle, accountId }) => ({
      status: 201,
      body: await contacts.add(handle, accountId, params.audienceId, body),
    })),
    list: endpoint(async ({ params, query }, { handle, accountId }) => ({
      status: 200,
      body: await contacts.list(handle, accountId, params.audienceId, query),
    })),
    get: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await contacts.get(handle, accountId, params),
    })),
    update: endpoint(async ({ params, body }, { handle, accountId }) => ({
      status: 200,
      body: await contacts.update(handle, accountId, params, body),
    })),
    remove: endpoint(async ({ params }, { handle, accountId }) => {
      await contacts.remove(handle, accountId, params)
      return { status: 204, body: undefined }
    }),
  })
}
