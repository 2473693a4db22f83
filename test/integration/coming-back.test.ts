import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { comeBack, takesInbound, untilCaptured } from '../support/returned-mail.ts'
import { startTestService, type TestService } from '../support/service.ts'

/* The whole way of an email: sent, captured, shown, and what comes back about it. */

let service: TestService

beforeAll(async () => {
  service = await startTestService({ mail: takesInbound })
  await service.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
})
afterAll(() => service.stop())

const sample = (name: string) =>
  readFileSync(join(import.meta.dirname, '..', 'bounces', 'corpus', `${name}.eml`), 'utf8')

/** Sends an email, waits until it is captured, and answers its return path. */
async function sendAndCapture(to: string): Promise<{ emailId: string; returnPath: string; capturedId: string }> {
  const { id: emailId } = await service.client.succeed(contract.emails.send, {
    body: { from: 'Shop <hello@shop.test>', to: [to], subject: 'Grüße', html: '<p>Hello</p>', text: 'Hello' },
  })
  return { emailId, ...(await untilCaptured(service, emailId)) }
}

test('an email is captured as it would have been sent, and shown', async () => {
  const { emailId, returnPath, capturedId } = await sendAndCapture('ada@example.org')
  const message = await service.client.succeed(contract.capturedMessages.get, { params: { id: capturedId } })
  expect(message).toMatchObject({
    emailId,
    from: '"Shop" <hello@shop.test>',
    recipients: ['ada@example.org'],
    subject: 'Grüße',
    html: '<p>Hello</p>',
    text: 'Hello',
  })
  expect(message.headers.map(({ name }) => name)).toContain('DKIM-Signature')
  const messageId = message.headers.find(({ name }) => name.toLowerCase() === 'message-id')?.value
  expect(messageId).toMatch(/^<.+@shop\.test>$/)
  expect(await service.client.succeed(contract.emails.get, { params: { id: emailId } })).toMatchObject({ messageId })
  const { data } = await service.client.succeed(contract.emails.list, { query: {} })
  expect(data.find(({ id }) => id === emailId)?.messageId).toBe(messageId)
  expect(returnPath).toMatch(/^b\.[0-9a-z]{42}@send\.shop\.test$/)
})

test('a notification that comes back bounces it, for the API and for webhooks', async () => {
  const { client } = service
  const { emailId, returnPath } = await sendAndCapture('ada@example.org')
  await comeBack(service, returnPath, sample('postfix-user-unknown'))
  const email = await client.succeed(contract.emails.get, { params: { id: emailId } })
  expect(email).toMatchObject({ status: 'bounced', recipients: [{ address: 'ada@example.org', status: 'bounced' }] })
  expect(email.timeline.at(-1)).toMatchObject({ type: 'bounced', host: 'mx1.example.org' })
  const { data: events } = await client.succeed(contract.events.list, { query: { type: 'email.bounced' } })
  expect(events).toMatchObject([{ data: { emailId, to: 'ada@example.org', bounceType: 'hard' } }])
  const { data: suppressed } = await client.succeed(contract.suppressions.list, { query: {} })
  expect(suppressed).toMatchObject([{ address: 'ada@example.org', reason: 'hard_bounce', source: 'notification' }])
})

test('what is not understood is shown, and everything is counted', async () => {
  const { client, url } = service
  const { emailId, returnPath } = await sendAndCapture('bob@example.org')
  await comeBack(service, returnPath, sample('person'))
  const { data } = await client.succeed(contract.inboundMessages.list, { query: { emailId } })
  expect(data).toMatchObject([{ emailId, subject: 'My parcel could not be delivered' }])
  const figures = await (await fetch(`${url}/metrics`)).text()
  expect(figures).toMatch(/^postern_inbound_messages_total\{kind="dsn"\} 1$/m)
  expect(figures).toMatch(/^postern_email_outcomes_total\{kind="bounced"\} 1$/m)
  expect(figures).toMatch(/^postern_inbound_messages_total\{kind="unreadable"\} 1$/m)
})

test('a process that does not work takes nothing', async () => {
  await using other = await startTestService({
    beside: service,
    roles: { worker: false },
    mail: takesInbound,
  })
  expect(other.app.inboundPort).toBeNull()
})
