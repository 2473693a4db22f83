import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

/* From the API to the mailbox and back: what a captured message is signed with, and what its links do. */

const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0'
const events = ['email.delivered', 'email.opened', 'email.clicked', 'subscriber.unsubscribed'] as const

let service: TestService
let receiver: Receiver

beforeAll(async () => {
  receiver = await startReceiver()
  service = await startTestService()
  await service.client.succeed(contract.webhooks.create, { body: { url: receiver.url, events: [...events] } })
})
afterAll(async () => {
  await service?.stop()
  await receiver?.stop()
})

/** Waits until the webhook has received `count` events in all. Returns those of one type. */
async function told(type: string, count: number) {
  const requests = await receiver.received(count)
  return requests.map(({ body }) => JSON.parse(body.toString())).filter((event) => event.type === type)
}

function visit(url: string, method = 'GET'): Promise<Response> {
  return fetch(url, { method, redirect: 'manual', headers: { 'user-agent': userAgent } })
}

test('an email is signed as its domain publishes it, and its links tell of its recipient', async () => {
  const { client } = service
  const domain = await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  const audience = await client.succeed(contract.audiences.create, { body: { name: 'News' } })
  await client.succeed(contract.subscribers.create, { body: { email: 'ann@example.org' } })
  const email = {
    from: 'Shop <news@shop.test>',
    to: ['Ann <Ann@example.org>', 'bob@example.org'],
    subject: 'Grüße',
    html: '<p><a href="https://shop.example/?a=1&amp;b=2">Sale</a></p>',
    audienceId: audience.id,
    trackOpens: true,
    trackClicks: true,
  }
  const { id: emailId } = await client.succeed(contract.emails.send, { body: email })

  await told('email.delivered', 2)
  const { data } = await client.succeed(contract.capturedMessages.list, { query: { emailId, limit: 10 } })
  expect(data.map(({ recipients }) => recipients).toSorted()).toEqual([['Ann@example.org'], ['bob@example.org']])
  const id = data.find(({ recipients }) => recipients[0] === 'Ann@example.org')?.id ?? ''
  const { html, headers, source } = await client.succeed(contract.capturedMessages.get, { params: { id } })

  const { results } = await dkimVerify(Buffer.from(source, 'base64'), {
    resolver: async (name) => domain.records.filter((record) => record.name === name).map(({ value }) => [value]),
  })
  expect(results.map(({ status, signingDomain }) => [status.result, signingDomain])).toEqual([
    ['pass', 'shop.test'],
    ['pass', 'shop.test'],
  ])

  const [, pixel = ''] = /src="([^"]+\/t\/o\/[^"]+)"/.exec(html ?? '') ?? []
  const [, link = ''] = /href="([^"]+\/t\/c\/[^"]+)"/.exec(html ?? '') ?? []
  const unsubscribe = headers.find(({ name }) => name === 'List-Unsubscribe')?.value.slice(1, -1) ?? ''
  expect([pixel, link, unsubscribe].every((url) => url.startsWith(service.url))).toBe(true)
  expect((await visit(pixel)).status).toBe(200)
  const about = { emailId, to: 'Ann@example.org', userAgent, ipAddress: '127.0.0.1' }
  expect((await told('email.opened', 3)).map((event) => event.data)).toMatchObject([about])
  expect((await visit(link)).headers.get('location')).toBe('https://shop.example/?a=1&b=2')
  const clicks = await told('email.clicked', 4)
  expect(clicks.map((event) => event.data)).toMatchObject([{ ...about, link: 'https://shop.example/?a=1&b=2' }])

  const figures = await (await fetch(`${service.url}/metrics`)).text()
  expect(figures).toMatch(/^postern_email_outcomes_total\{kind="opened"\} 1$/m)
  expect(figures).toMatch(/^postern_email_outcomes_total\{kind="clicked"\} 1$/m)

  expect(await (await visit(unsubscribe)).text()).toContain('<form method="post">')
  expect((await visit(unsubscribe, 'POST')).status).toBe(200)
  const [unsubscribed] = await told('subscriber.unsubscribed', 5)
  expect(unsubscribed?.data).toMatchObject({ email: 'ann@example.org', status: 'unsubscribed' })
  const again = await client.succeed(contract.emails.send, { body: { ...email, to: ['ann@example.org'] } })
  expect(again.status).toBe('suppressed')
})

test('a process that is no API answers no links', async () => {
  await using worker = await startTestService({ beside: service, roles: { api: false } })

  expect((await fetch(`${worker.url}/u/x`, { method: 'POST' })).headers.get('content-type')).toMatch(/json/)
})
