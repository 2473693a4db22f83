import { pino } from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AddressPolicy } from '../../server/webhook-delivery/attempt/address-guard.ts'
import { findRefusedWebhooks, reportRefusedWebhooks } from '../../server/webhook-delivery/refused-webhooks.ts'
import { startDnsServer } from '../support/dns-server.ts'
import { type Engine, startEngine } from '../support/engine.ts'

const strict: AddressPolicy = { allowHttp: true, allowPrivateNetworks: false }
const open: AddressPolicy = { allowHttp: true, allowPrivateNetworks: true }

let engine: Engine
beforeAll(async () => {
  engine = await startEngine()
})
afterAll(() => engine.stop())

async function addWebhooks(urls: readonly string[]): Promise<string[]> {
  const ids: string[] = []
  for (const url of urls) ids.push(await engine.addWebhook(url, []))
  return ids
}

test('webhooks to which the policy lets nothing be delivered are named, also behind a name', async () => {
  await using dns = await startDnsServer()
  dns.set('inside.test', ['10.0.0.1'])
  dns.set('outside.test', ['1.1.1.1'])
  dns.set('imds.test', ['169.254.169.254'])
  const [inside, , literal, , metadata] = await addWebhooks([
    'https://inside.test/hooks',
    'https://outside.test/hooks',
    'http://127.0.0.1:4000/hooks',
    'https://unknown.test/hooks',
    'https://imds.test/hooks',
  ])
  const disabled = await engine.addWebhook('https://inside.test/disabled', [])
  await engine.db
    .updateTable('webhooks')
    .set({ status: 'disabled', disabled_reason: 'manual' })
    .where('id', '=', disabled)
    .execute()
  const { signal } = new AbortController()
  const find = (policy: AddressPolicy) => findRefusedWebhooks({ db: engine.db, policy, resolve: dns.resolve, signal })

  expect(await find(strict)).toEqual({ count: 3, ids: [inside, literal, metadata] })
  expect(await find(open)).toEqual({ count: 1, ids: [metadata] })

  const many = await addWebhooks(Array.from({ length: 30 }, (_, i) => `https://inside.test/${i}`))
  const asked = dns.queries.length
  const found = await find(strict)
  expect(found.count).toBe(33)
  expect(found.ids).toEqual([inside, literal, metadata, ...many.slice(0, 17)])
  // Four names, each for A and AAAA: a host is looked up once.
  expect(dns.queries.length - asked).toBe(8)

  const lines: string[] = []
  const logger = pino({}, { write: (line) => lines.push(line) })
  await reportRefusedWebhooks({ db: engine.db, policy: strict, resolve: dns.resolve, signal }, logger)
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    count: 33,
    webhookIds: found.ids,
    msg: expect.stringContaining('WEBHOOK_ALLOW_PRIVATE_NETWORKS=true'),
  })
})

test('a name server that says nothing does not hold the end up', async () => {
  await addWebhooks(['https://silent.test/hooks'])
  const asked = Promise.withResolvers<void>()
  const stopping = new AbortController()
  const found = findRefusedWebhooks({
    db: engine.db,
    policy: strict,
    resolve: () => {
      asked.resolve()
      return new Promise(() => undefined)
    },
    signal: stopping.signal,
  })
  await asked.promise
  stopping.abort()
  expect((await found).ids).not.toContain('https://silent.test/hooks')
})
