import { expect, test } from 'vitest'
import { unsubscribedFrom } from '../../server/audiences/unsubscribed.ts'
import { findSendingDomain } from '../../server/domains/service.ts'
import { createEmailService } from '../../server/emails/service.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { createSuppressionService } from '../../server/suppressions/service.ts'
import { createRendererTurns } from '../../server/templates/renderer-turns.ts'
import { createTemplateService } from '../../server/templates/service.ts'
import { findWithoutTopic } from '../../server/topics/choices.ts'
import { startWithScript } from '../support/worlds/email-delivery.ts'

async function start() {
  const { server, engine } = await startWithScript()
  const { clock } = engine
  const outbox = createOutbox({ clock, wake: () => undefined })
  const emails = createEmailService({
    clock,
    outbox,
    queue: engine.queue.emails,
    wake: () => engine.worker.wake('single'),
    traceparent: () => null,
    isCaptured: false,
    faultOfLinks: null,
    findSendingDomain,
    findSuppressed: createSuppressionService({ clock }).find,
    findUnsubscribed: unsubscribedFrom,
    findWithoutTopic,
    renderTemplates: createTemplateService({ clock, rendererOf: createRendererTurns(createRenderer()) }).render,
  })
  return { server, engine, emails }
}

test('an email by a test key connects to no mail server, whoever plays among its recipients', async () => {
  const { server, engine, emails } = await start()
  const { db, accountId } = engine
  const email = {
    from: 'Postern <hello@example.test>',
    to: ['ada@example.com', 'delivered@simulator.test'],
    cc: ['bob@example.org'],
    bcc: ['bounced@simulator.test'],
    subject: 'Welcome',
    text: 'It is good to have you here.',
    trackOpens: true,
  }
  const tried = await emails.send(db, { accountId, mode: 'test' }, email)
  const { recipients } = await engine.statusOf(
    tried.id,
    (seen) => seen.recipients[1] === 'delivered' && seen.recipients[3] === 'bounced',
  )
  expect(recipients).toEqual(['validated', 'delivered', 'validated', 'bounced'])
  expect((await engine.eventsOf(tried.id)).toSorted()).toEqual(['email.bounced', 'email.delivered', 'email.sent'])
  // Nothing is left of it that could be sent later.
  await engine.advance(73 * 3_600)
  expect(server.connections).toBe(0)

  // By a live key the same goes to the others: the server is there, and would have been found.
  const sent = await emails.send(db, { accountId, mode: 'live' }, email)
  await engine.statusOf(sent.id, ({ status }) => status === 'sent')
  const written = server.messages.flatMap((message) => message.recipients.map(({ address }) => address))
  expect(written.toSorted()).toEqual(['ada@example.com', 'bob@example.org'])
  expect(server.messages.filter(({ data }) => data.includes(tried.id.slice('email_'.length)))).toEqual([])
})
