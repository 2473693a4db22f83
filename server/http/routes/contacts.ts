import { initServer } from '@ts-rest/express'
import { type AddContact, type AddedContactBatch, addContact } from '../../../contract/contacts.ts'
import { contract } from '../../../contract/index.ts'
import type { ContactService } from '../../audiences/contact-service.ts'
import { mapYielding } from '../../lib/yielding.ts'
import { DomainError } from '../../shared/errors.ts'
import type { Endpoint } from '../route-handler.ts'
import { streamedCsv } from '../streamed-csv.ts'
import { readPart } from '../validation.ts'

export function contactRoutes(contacts: ContactService, endpoint: Endpoint) {
  return initServer().router(contract.contacts, {
    add: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 201,
      body: await contacts.add(handle, scope, params.audienceId, body),
    })),
    addBatch: endpoint(async ({ params, body }, { handle, scope }) => {
      const { contacts: given, ...rest } = body
      const read = await mapYielding(given, (contact, index) => readPart(addContact, contact, ['contacts', index]))
      const right = read.filter((contact): contact is AddContact => !(contact instanceof DomainError))
      const results = await contacts.addBatch(handle, scope, params.audienceId, { ...rest, contacts: right })
      const response: AddedContactBatch = { data: [], errors: [] }
      for (const [index, contact] of read.entries()) {
        if (contact instanceof DomainError) {
          const { code, message, details } = contact
          response.errors.push({ index, code, message, details: [...details] })
          continue
        }
        const result = results.shift()
        if (result === undefined) throw new Error('a contact of the batch has no result')
        if (result.outcome === 'refused') {
          response.errors.push({ index, code: 'rule_violation', message: result.reason })
        } else response.data.push({ index, result: result.outcome, subscriberId: result.subscriberId })
      }
      return { status: 200, body: response }
    }),
    exportCsv: endpoint(async ({ req, res, params }, { handle, scope }) => ({
      status: 200,
      body: streamedCsv(
        { req, res },
        await contacts.exportCsv(handle, scope.accountId, params.audienceId),
        'contacts.csv',
      ),
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
    sendConfirmation: endpoint(async ({ params }, { handle, scope }) => ({
      status: 202,
      body: await contacts.askToConfirm(handle, scope, params),
    })),
    remove: endpoint(async ({ params }, { handle, scope }) => {
      await contacts.remove(handle, scope, params)
      return { status: 204, body: undefined }
    }),
  })
}
