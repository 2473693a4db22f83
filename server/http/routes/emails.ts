import { initServer } from '@ts-rest/express'
import { type AcceptedEmail, type AcceptedEmailBatch, sendEmail } from '../../../contract/emails.ts'
import { contract } from '../../../contract/index.ts'
import type { EmailService } from '../../emails/service.ts'
import { DomainError } from '../../errors.ts'
import type { Endpoint } from '../endpoint.ts'
import { readPart } from '../validation.ts'

export function emailRoutes(emails: EmailService, endpoint: Endpoint) {
  return initServer().router(contract.emails, {
    send: endpoint(async ({ body }, { handle, accountId, mode }) => ({
      status: 202,
      body: await emails.send(handle, { accountId, mode }, body),
    })),
    sendBatch: endpoint(async ({ body, query }, { handle, accountId, mode }) => {
      const items = body.emails.map((email, index) => readPart(sendEmail, email, ['emails', index]))
      const isPermissive = query.mode === 'permissive'
      const results = await emails.sendBatch(handle, { accountId, mode }, { items, isPermissive })
      return { status: 202, body: batchAnswer(results) }
    }),
    list: endpoint(async ({ query }, { handle, accountId }) => ({
      status: 200,
      body: await emails.list(handle, accountId, query),
    })),
    get: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await emails.get(handle, accountId, params.id),
    })),
    update: endpoint(async ({ params, body }, { handle, accountId }) => ({
      status: 200,
      body: await emails.reschedule(handle, accountId, params.id, new Date(body.scheduledAt)),
    })),
    cancel: endpoint(async ({ params }, { handle, accountId }) => ({
      status: 200,
      body: await emails.cancel(handle, accountId, params.id),
    })),
  })
}

function batchAnswer(results: readonly (AcceptedEmail | DomainError)[]): AcceptedEmailBatch {
  const answer: AcceptedEmailBatch = { data: [], errors: [] }
  for (const [index, result] of results.entries()) {
    if (!(result instanceof DomainError)) {
      answer.data.push({ index, ...result })
      continue
    }
    const { code, message, details } = result
    answer.errors.push({ index, code, message, ...(details.length === 0 ? {} : { details: [...details] }) })
  }
  return answer
}
