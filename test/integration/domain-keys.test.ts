import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../support/service.ts'

/* Making the keys of a domain takes long, and longer where many are wanted: nobody else is to wait for that. */

/** As many as the database has connections for requests. */
const domains = 10
const gate = Promise.withResolvers<void>()
const allBegun = Promise.withResolvers<void>()
let begun = 0
let service: TestService

async function makeDkimKeys() {
  begun += 1
  if (begun === domains) allBegun.resolve()
  await gate.promise
  const pair = (privateKey: ReturnType<typeof generateKeyPairSync>['privateKey']) => ({ publicKey: 'AAAA', privateKey })
  const { privateKey } = generateKeyPairSync('ed25519')
  return { rsa: pair(privateKey), ed25519: pair(privateKey) }
}

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false }, makeDkimKeys })
})
afterAll(() => {
  gate.resolve()
  return service.stop()
})

function add(index: number) {
  const options = { json: { name: `shop-${index}.example` }, idempotencyKey: `domain ${index}` }
  return service.client.send('POST', '/v1/domains', options)
}

test('while keys are made for as many domains as there are connections, other requests are answered', async () => {
  const { client } = service
  const adding = Array.from({ length: domains }, (_, index) => add(index))
  await allBegun.promise
  expect(await client.send('GET', '/v1/domains')).toMatchObject({ status: 200, body: { data: [] } })
  expect(await add(0)).toMatchObject({ status: 409, body: { error: { code: 'idempotency_conflict' } } })

  gate.resolve()
  const added = await Promise.all(adding)
  expect(added.map(({ status }) => status)).toEqual(Array(domains).fill(201))
  expect((await add(0)).body).toEqual(added[0]?.body)
  expect(begun).toBe(domains)
})
