import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { keyThatMay } from '../support/api-keys.ts'
import { createTestTime, type TestTime } from '../support/clock.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { publish, statusesOf } from '../support/worlds/domains.ts'

/* Sending domains as a client sees them: over HTTP, with a name server that is asked and a webhook that is told. */

let dns: DnsServer
let receiver: Receiver
let time: TestTime
let service: TestService

beforeAll(async () => {
  dns = await startDnsServer()
  receiver = await startReceiver()
  time = createTestTime()
  service = await startTestService({ time, mail: { dnsServers: [dns.address] } })
})
afterAll(async () => {
  await service.stop()
  await receiver.stop()
  await dns.stop()
})

/** Returns the events that the webhook received, as types and domains. */
function told(): [type: unknown, domain: unknown][] {
  return receiver.requests.map(({ body }) => {
    const event = JSON.parse(body.toString())
    return [event.type, event.data.domain]
  })
}

test('a domain is found by itself once its records are published, and each step is told', async () => {
  const { client } = service
  const events = ['domain.created', 'domain.verified', 'domain.deleted'] as const
  await client.succeed(contract.webhooks.create, { body: { url: receiver.url, events: [...events] } })
  const domain = await client.succeed(contract.domains.create, { body: { name: 'Shop.example' } })
  const params = { id: domain.id }
  expect(statusesOf(await client.succeed(contract.domains.verify, { params, body: {} }))).toMatchObject({
    spf: 'missing',
  })

  publish(dns, domain)
  await expect
    .poll(async () => {
      await time.queueClock.tick(30_000)
      return (await client.succeed(contract.domains.get, { params })).status
    })
    .toBe('verified')
  await client.succeed(contract.domains.delete, { params })

  await receiver.received(3)
  const expected = events.map((type) => [type, 'shop.example'])
  expect(told().toSorted()).toEqual(expected.toSorted())
})

test('the preview of a campaign notes a domain without DMARC, as its last check found it', async () => {
  const { client, keys } = service
  const audience = await client.succeed(contract.audiences.create, { body: { name: 'News' } })
  const notesOf = async (from: string, key = keys.live) => {
    const as = client.as(key)
    const body = {
      name: 'News',
      audienceId: audience.id,
      from,
      subject: 'Hi',
      content: { text: '{{ unsubscribeUrl }}' },
    }
    const { id } = await as.succeed(contract.campaigns.create, { body })
    const asked = dns.queries.length
    const { checks } = await as.succeed(contract.campaigns.render, { params: { id }, body: {} })
    expect(dns.queries).toHaveLength(asked)
    return checks.filter(({ code }) => code === 'no_dmarc').map(({ message }) => message)
  }
  const domain = await client.succeed(contract.domains.create, { body: { name: 'dmarc.news.example' } })
  const verify = () => client.succeed(contract.domains.verify, { params: { id: domain.id }, body: {} })
  const from = 'News <hello@DMARC.news.example>'
  // It was not looked at yet.
  expect(await notesOf(from)).toEqual([])
  publish(dns, domain, ['dkim_rsa', 'dkim_ed25519', 'spf', 'return_path'])
  await verify()
  const note = expect.stringContaining('"_dmarc.dmarc.news.example"')
  expect(await notesOf(from)).toEqual([note])
  expect(await notesOf(from, keys.test)).toEqual([note])
  // Not a domain of the account, or not known: its own record may be there.
  expect(await notesOf('hello@stranger.example')).toEqual([])
  expect(await notesOf('hello@below.dmarc.news.example')).toEqual([])

  dns.set('_dmarc.dmarc.news.example', 'failure')
  await verify()
  expect(await notesOf(from)).toEqual([])
  dns.set('_dmarc.dmarc.news.example', { TXT: ['v=DMARC1; p=none', 'v=DMARC1; p=reject'] })
  await verify()
  expect(await notesOf(from)).toEqual([note])
  dns.unset('_dmarc.dmarc.news.example')
  dns.set('_dmarc.news.example', { TXT: ['v=DMARC1; p=none'] })
  await verify()
  expect(await notesOf(from)).toEqual([])
})

test('a check that is asked for twice with one key is made once', async () => {
  const { client } = service
  const { id } = await client.succeed(contract.domains.create, { body: { name: 'once.example' } })
  const check = () => client.send('POST', `/v1/domains/${id}/verify`, { json: {}, idempotencyKey: 'one check' })
  const first = await check()
  const asked = dns.queries.length
  const second = await check()
  expect(second.body).toEqual(first.body)
  expect(dns.queries).toHaveLength(asked)
})

test.each(['', '.', '-a', 'a-', 'a..b', 'a_b', 'a@b', 'bücher', 'a'.repeat(64)])(
  'a return path that is none is refused: %j',
  async (returnPath) => {
    const answer = await service.client.send('POST', '/v1/domains', { json: { name: 'path.example', returnPath } })
    expect(answer).toMatchObject({ status: 400, body: { error: { details: [{ path: 'body.returnPath' }] } } })
  },
)

test('keys may read or write by their permissions', async () => {
  const { client, keys } = service
  const json = { name: 'permitted.example' }
  const writing = await keyThatMay('domains:write', service)
  expect(await client.send('POST', '/v1/domains', { json, key: keys.read })).toMatchObject({ status: 401 })
  expect(await client.send('GET', '/v1/domains', { key: keys.read })).toMatchObject({ status: 200 })
  expect(await client.send('POST', '/v1/domains', { json, key: writing })).toMatchObject({
    status: 201,
  })
  expect(await client.send('GET', '/v1/domains', { key: writing })).toMatchObject({ status: 401 })
})
