import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Domain } from '../../contract/domains.ts'
import { contract } from '../../contract/index.ts'
import { createTestTime } from '../support/clock.ts'
import { startTestService, type TestService } from '../support/service.ts'

/* Keys of a domain are rotated while it sends: every message verifies with the records shown at the time. */

let service: TestService
const time = createTestTime()

beforeAll(async () => {
  service = await startTestService({ time })
})
afterAll(() => service.stop())

/** Sends an email, waits until it is captured, and returns it as it would have gone over the line. */
async function sendAndCapture(): Promise<Buffer> {
  const { client, database } = service
  const { id: emailId } = await client.succeed(contract.emails.send, {
    body: { from: 'hello@shop.test', to: 'ada@example.org', subject: 'Hello', text: 'Hello' },
  })
  const captured = () =>
    database.db.selectFrom('captured_messages').select('content').where('email_id', '=', emailId).executeTakeFirst()
  await expect.poll(captured).toBeDefined()
  return (await captured())?.content ?? expect.fail('it was captured a moment ago')
}

/** The selectors and results of the signatures, with the published records alone. */
async function verified(message: Buffer, published: readonly { name: string; value: string }[]) {
  const { results } = await dkimVerify(message, {
    resolver: async (name) => {
      const record = published.find((one) => one.name === name)
      if (record === undefined) throw Object.assign(new Error(`${name} is not there`), { code: 'ENOTFOUND' })
      return [[record.value]]
    },
  })
  return results.map(({ selector, status }) => [`${selector}._domainkey.shop.test`, status.result])
}

const keyNames = ({ records }: Domain) => records.filter(({ key }) => key === 'signing').map(({ name }) => name)

test('mail that was sent before and after a rotation verifies with the records of its time', async () => {
  const { client, keys } = service
  const before = await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  const first = await sendAndCapture()
  const path = `/v1/domains/${before.id}/rotate-keys`

  const refused = await client.send('POST', path, { key: keys.test, json: {} })
  expect([refused.status, refused.text]).toEqual([401, expect.stringContaining('needs a live key')])
  expect(await client.succeed(contract.domains.get, { params: { id: before.id } })).toEqual(before)

  const after = await client.succeed(contract.domains.rotateKeys, { params: { id: before.id }, body: {} })
  expect(keyNames(after)).not.toEqual(keyNames(before))
  expect(after.retiredRecords.map(({ name }) => name)).toEqual(keyNames(before))
  const published = [...after.records, ...after.retiredRecords]
  expect(await verified(first, published)).toEqual(keyNames(before).map((name) => [name, 'pass']))

  // The worker remembers the old keys for a minute.
  await time.advance(60_000)
  expect(await verified(await sendAndCapture(), published)).toEqual(keyNames(after).map((name) => [name, 'pass']))
})
