import { initServer } from '@ts-rest/express'
import { type AcceptedEmail, type AcceptedEmailBatch, sendEmail } from '../../../contract/emails.ts'
import { contract } from '../../../contract/index.ts'
import type { EmailService } from '../../emails/service.ts'
import { written } from '../../lib/streamed-text.ts'
import { mapYielding } from '../../lib/yielding.ts'
import { DomainError } from '../../shared/errors.ts'
import { withSince } from '../deprecated.ts'
import type { Endpoint } from '../route-handler.ts'
import { createRenderingTurns, createRequestTurns } from '../turns.ts'
import { readPart } from '../validation.ts'

export function emailRoutes(emails: EmailService, endpoint: Endpoint) {
  const inTurns = createRequestTurns()
  const inTurnsOfRendering = createRenderingTurns(4)
  return initServer().router(contract.emails, {
    send: inTurnsOfRendering(
      endpoint(async ({ body }, { handle, scope }) => ({
        status: 202,
        body: await emails.send(handle, scope, body),
      })),
      ({ body }) => hasTemplate(body),
    ),
    sendBatch: inTurnsOfRendering(
      endpoint(async ({ body, query }, { handle, scope }) => {
        const items = await mapYielding(body.emails, (email, index) => readPart(sendEmail, email, ['emails', index]))
        const isPermissive = query.mode === 'permissive'
        const results = await emails.sendBatch(handle, scope, { items, isPermissive })
        return { status: 202, body: batchResponse(results) }
      }),
      ({ body }) => body.emails.some(hasTemplate),
    ),
    list: endpoint(async ({ query }, { handle, scope }) => ({
      status: 200,
      body: await emails.list(handle, scope, withSince(query)),
    })),
    get: endpoint(async ({ params }, { handle, scope, enterLarge }) => ({
      status: 200,
      body: await emails.get(handle, scope, params.id, enterLarge),
    })),
    getAttachment: endpoint(async ({ params }, { handle, scope, enterLarge }) => ({
      status: 200,
      body: written(await emails.getAttachment(handle, scope, params, enterLarge)),
    })),
    // The files are copied inside the database, and a request for that costs its client nothing.
    resend: inTurns(
      endpoint(async ({ params }, { handle, scope }) => ({
        status: 202,
        body: await emails.resend(handle, scope, params.id),
      })),
    ),
    update: endpoint(async ({ params, body }, { handle, scope }) => ({
      status: 200,
      body: await emails.reschedule(handle, scope, params.id, new Date(body.scheduledAt)),
    })),
    cancel: endpoint(async ({ params }, { handle, scope }) => ({
      status: 200,
      body: await emails.cancel(handle, scope, params.id),
    })),
  })
}

function hasTemplate(email: unknown): boolean {
  return typeof email === 'object' && email !== null && 'template' in email && email.template !== null
}

function batchResponse(results: readonly (AcceptedEmail | DomainError)[]): AcceptedEmailBatch {
  const response: AcceptedEmailBatch = { data: [], errors: [] }
  for (const [index, result] of results.entries()) {
    if (!(result instanceof DomainError)) {
      response.data.push({ index, ...result })
      continue
    }
    const { code, message, details } = result
    response.errors.push({ index, code, message, ...(details.length === 0 ? {} : { details: [...details] }) })
  }
  return response
}
