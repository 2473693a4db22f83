import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { startTestService, type TestService } from '../support/service.ts'

/*
 * Double opt-in as a form and a person meet it: the contact is added over the API, and the link of the email opened in
 * all the ways that clients and scanners open links.
 */

let service: TestService
let audienceId: string
let from: string

beforeAll(async () => {
  service = await startTestService({ roles: { worker: false }, publicUrl: 'https://mail.example.com' })
  const { client } = service
  const { name } = await client.succeed(contract.domains.create, { body: { name: 'asking.test' } })
  from = `News <news@${name}>`
  const body = { name: 'Readers', doubleOptIn: { from } }
  audienceId = (await client.succeed(contract.audiences.create, { body })).id
  const brand = { name: '<b>Acme</b>', accentColor: '#ffee00' }
  await client.succeed(contract.brands.update, { body: brand })
})
afterAll(() => service.stop())

/** Adds a person, and returns the path of the link in the email to them. */
async function ask(email: string, client = service.client) {
  const contact = await client.succeed(contract.contacts.add, { params: { audienceId }, body: { email } })
  const { data } = await client.succeed(contract.emails.list, { query: { recipient: email } })
  const sent = await client.succeed(contract.emails.get, { params: { id: data[0]?.id ?? '' } })
  const [, path = ''] = /https:\/\/mail\.example\.com(\/confirm\/\S+)/.exec(sent.text ?? '') ?? []
  const { subscriberId } = contact
  const status = async () =>
    (await service.client.succeed(contract.contacts.get, { params: { audienceId, subscriberId } })).status
  return { contact, sent, path, status }
}

const open = (path: string, method = 'GET', headers = {}) =>
  fetch(service.url + path, { method, headers, redirect: 'manual' })

test('the link to confirm shows a page in the words and colors of the account, and only POST confirms', async () => {
  const { sent, path, status } = await ask('ada@example.org')
  expect(sent.html).toContain('&lt;b&gt;Acme&lt;/b&gt;')
  expect(sent.html).toContain('background: #ffee00; color: #000000')
  const prefetch = { 'sec-purpose': 'prefetch', purpose: 'prefetch' }
  for (const response of [await open(path), await open(path, 'HEAD'), await open(path, 'GET', prefetch)]) {
    expect(response.status).toBe(200)
  }
  const page = await (await open(path)).text()
  expect(page).toContain('&lt;b&gt;Acme&lt;/b&gt;')
  expect(page).toContain('<form method="post"')
  expect(page).toContain('background: #ffee00')
  expect((await open(path, 'PUT')).status).toBe(405)
  expect(await status()).toBe('pending')

  // A page elsewhere may post: it needs the link, and no cookie.
  const confirmed = await open(path, 'POST', { origin: 'https://elsewhere.example' })
  expect(confirmed.status).toBe(200)
  expect(await confirmed.text()).toContain('You are subscribed')
  expect(await status()).toBe('active')
  const again = await open(path, 'POST')
  expect([again.status, await (await open(path)).text()]).toEqual([200, expect.stringContaining('You are subscribed')])
})

test('the link to confirm is on a page that no other page may frame, and that nobody indexes or refers to', async () => {
  const { path } = await ask('grace@example.org')
  const { headers } = await open(path)
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  expect(headers.get('x-robots-tag')).toBe('noindex')
  expect(headers.get('set-cookie')).toBeNull()
})

test.each([
  ['unsubscribed', 409, 'You are unsubscribed'],
  ['deleted', 404, 'This link does not work'],
  ['suppressed', 409, 'Your address gets no emails'],
])('the link to confirm says what it cannot do for a person who is %s', async (what, code, title) => {
  const email = `${what}@example.org`
  const { client } = service
  const { contact, path } = await ask(email)
  const params = { id: contact.subscriberId }
  if (what === 'unsubscribed') await client.succeed(contract.subscribers.unsubscribe, { params, body: {} })
  else if (what === 'deleted') await client.succeed(contract.subscribers.delete, { params })
  else await client.succeed(contract.suppressions.create, { body: { address: email } })
  for (const method of ['GET', 'POST']) {
    const response = await open(path, method)
    expect([response.status, await response.text()]).toEqual([code, expect.stringContaining(title)])
  }
})

test('the link to confirm that is not whole is said to be so', async () => {
  const { path, status } = await ask('cut@example.org')
  for (const method of ['GET', 'POST']) {
    const response = await open(path.slice(0, -1), method)
    expect([response.status, await response.text()]).toEqual([404, expect.stringContaining('does not work')])
  }
  expect(await status()).toBe('pending')
})

test('the link to confirm of a test key confirms nobody in live mode', async () => {
  const testing = service.client.as(service.keys.test)
  const { path, status } = await ask('tried@example.org', testing)
  for (const method of ['GET', 'POST']) {
    const response = await open(path, method)
    expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('Nothing was confirmed')])
  }
  expect(await status()).toBe('pending')
})

test('the link to confirm is not followed without end for one address', async () => {
  const { path } = await ask('often@example.org')
  let status = 200
  for (let asked = 0; asked < 100 && status === 200; asked += 1) status = (await open(path, 'POST')).status
  expect(status).toBe(429)
})
