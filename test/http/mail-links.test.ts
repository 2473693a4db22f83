import { Registry } from 'prom-client'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createHttpApp } from '../../server/http/express-app.ts'
import { type HttpServer, listen } from '../../server/http/server.ts'
import { createMailTokens, type UnsubscribeRef } from '../../server/message/mail-tokens.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { newId } from '../../server/shared/ids.ts'
import { createMailLinks, type Visit } from '../../server/tracking/tracking.ts'

const at = new Date('2026-03-01T09:30:00.000Z')
const tokens = createMailTokens(Buffer.alloc(32, 7))
const recipient = { emailId: newId('email', at), position: 1 }
const leaving = { ...recipient, accountId: newId('account', at), address: 'ann@example.org' }
const gone = { ...leaving, accountId: newId('account', at) }
const link = 'https://shop.example/sale?a=1&b=ü#top'
const userAgent = 'Mozilla/5.0 (X11; Linux x86_64; rv:142.0) Gecko/20100101 Firefox/142.0'

let server: HttpServer
let visits: Visit[] = []
let unsubscribed: UnsubscribeRef[] = []

beforeAll(async () => {
  const mailLinks = createMailLinks({
    tokens,
    clock: { now: () => at },
    record: (visit) => visits.push(visit),
    unsubscribe: async (one) => {
      if (one.accountId === gone.accountId) return false
      unsubscribed.push(one)
      return true
    },
  })
  const logger = createLogger({ level: 'silent' })
  const app = createHttpApp({ api: null, mailLinks, registry: new Registry(), checks: {}, logger, trustProxy: 1 })
  server = await listen({ app, host: '127.0.0.1', port: 0, logger })
})
afterAll(() => server?.close(0))
beforeEach(() => {
  visits = []
  unsubscribed = []
})

function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { 'user-agent': userAgent, 'x-forwarded-for': '192.0.2.9', ...init.headers }
  return fetch(server.url + path, { redirect: 'manual', ...init, headers })
}

const visitor = { userAgent, ipAddress: '192.0.2.9', automated: false }

describe('the pixel', () => {
  const path = `/t/o/${tokens.pixel(recipient)}`

  test('is an image that no cache keeps, and tells who asked for it', async () => {
    const answer = await send(path)
    const bytes = Buffer.from(await answer.arrayBuffer())

    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('image/gif')
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expect(bytes.subarray(0, 10)).toEqual(Buffer.from('GIF89a\x01\x00\x01\x00', 'latin1'))
    expect(visits).toEqual([{ kind: 'opened', ...recipient, at, ...visitor }])
  })

  test.each([
    ['a token that is none', '/t/o/x'],
    ['the token of a link', `/t/o/${tokens.click({ ...recipient, link })}`],
    ['a token that was cut', path.slice(0, -1)],
  ])('is the same image with %s, and tells nothing', async (_, wrong) => {
    const answer = await send(wrong)

    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('image/gif')
    expect(visits).toEqual([])
  })

  test('tells nothing when it is only looked at', async () => {
    const answer = await send(path, { method: 'HEAD' })

    expect(answer.status).toBe(200)
    expect(visits).toEqual([])
  })

  test.each([
    ['a machine asks for it', { 'user-agent': 'curl/8.14.1' }],
    ['it is fetched ahead', { 'sec-purpose': 'prefetch;prerender' }],
    ['it is fetched ahead by an older browser', { 'x-moz': 'prefetch' }],
  ])('says so when %s', async (_, headers) => {
    await send(path, { headers })

    expect(visits).toEqual([expect.objectContaining({ kind: 'opened', automated: true })])
  })

  test('keeps only so much of what a client says of itself', async () => {
    await send(path, { headers: { 'user-agent': 'x'.repeat(5_000) } })

    expect(visits[0]?.userAgent).toBe('x'.repeat(500))
  })
})

describe('a link', () => {
  const path = `/t/c/${tokens.click({ ...recipient, link })}`

  test('leads where the email did, and tells who followed it', async () => {
    const answer = await send(path)

    expect(answer.status).toBe(302)
    expect(answer.headers.get('location')).toBe('https://shop.example/sale?a=1&b=%C3%BC#top')
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
    expect(visits).toEqual([{ kind: 'clicked', ...recipient, link, at, ...visitor }])
  })

  test('leads there too for who only looks, and tells nothing', async () => {
    const answer = await send(path, { method: 'HEAD' })

    expect(answer.status).toBe(302)
    expect(visits).toEqual([])
  })

  test.each([
    ['a token that is none', '/t/c/x'],
    ['a token of another purpose', `/t/c/${tokens.pixel(recipient)}`],
    ['a token that was changed', path.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))],
    ['a token made with another key', `/t/c/${createMailTokens(Buffer.alloc(32, 8)).click({ ...recipient, link })}`],
    ['an address in its place', `/t/c/${encodeURIComponent('https://eve.example/')}`],
    ['an address beside it', '/t/c/x?url=https://eve.example/'],
    [
      'what is no link to the web, signed as it is',
      `/t/c/${tokens.click({ ...recipient, link: 'javascript:alert(1)' })}`,
    ],
    ['a line break, signed as it is', `/t/c/${tokens.click({ ...recipient, link: 'x\r\nSet-Cookie: a=b' })}`],
  ])('leads nowhere with %s', async (_, wrong) => {
    const answer = await send(wrong)

    expect(answer.status).toBe(404)
    expect(answer.headers.get('location')).toBeNull()
    expect(await answer.text()).toContain('This link does not work')
    expect(visits).toEqual([])
  })
})

describe('to unsubscribe', () => {
  const path = `/u/${tokens.unsubscribe(leaving)}`
  const form = { 'content-type': 'application/x-www-form-urlencoded' }

  test('a page asks, which changes nothing and may do nothing but that', async () => {
    for (const method of ['GET', 'HEAD']) {
      const answer = await send(path, { method })

      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(answer.headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; style-src 'sha256-[^']+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
      )
      expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expect(await answer.text()).toMatch(method === 'GET' ? /<form method="post">/ : /^$/)
    }
    expect(unsubscribed).toEqual([])
  })

  test.each([
    ['the form of the page', { headers: form, body: '' }],
    ['one click at a mailbox provider', { headers: form, body: 'List-Unsubscribe=One-Click' }],
    ['one click, in the other form', { body: multipart() }],
    ['nothing at all', {}],
  ])('is what %s does, without a redirect', async (_, init) => {
    const answer = await send(path, { method: 'POST', ...init })

    expect(answer.status).toBe(200)
    expect(await answer.text()).toContain('You are unsubscribed')
    expect(unsubscribed).toEqual([leaving])
  })

  test('again is no error', async () => {
    const answers = [await send(path, { method: 'POST' }), await send(path, { method: 'POST' })]

    expect(answers.map(({ status }) => status)).toEqual([200, 200])
  })

  test('many times at once is done once, and later again', async () => {
    const held = Promise.withResolvers<boolean>()
    const done: UnsubscribeRef[] = []
    const links = createMailLinks({
      tokens,
      clock: { now: () => at },
      record: () => undefined,
      unsubscribe: (one) => {
        done.push(one)
        return held.promise
      },
    })
    const token = tokens.unsubscribe(leaving)
    const asked = [links.unsubscribe(token), links.unsubscribe(token), links.unsubscribe(token)]
    held.resolve(true)

    expect(await Promise.all(asked)).toEqual([true, true, true])
    expect(done).toEqual([leaving])
    expect(await links.unsubscribe(token)).toBe(true)
    expect(done).toHaveLength(2)
  })

  test.each([
    ['a token that is none', '/u/x'],
    ['a token of another purpose', `/u/${tokens.pixel(recipient)}`],
  ])('is not possible with %s', async (_, wrong) => {
    const answers = [await send(wrong), await send(wrong, { method: 'POST' })]

    expect(answers.map(({ status }) => status)).toEqual([404, 404])
    expect(unsubscribed).toEqual([])
  })

  test('is not possible any more once the account is gone', async () => {
    const answer = await send(`/u/${tokens.unsubscribe(gone)}`, { method: 'POST' })

    expect(answer.status).toBe(404)
    expect(await answer.text()).toContain('This link does not work')
  })
})

test.each([
  ['POST', '/t/o/x', 'GET, HEAD'],
  ['DELETE', '/t/c/x', 'GET, HEAD'],
  ['PUT', '/u/x', 'GET, HEAD, POST'],
])('%s %s is refused, with what there is', async (method, path, allowed) => {
  const answer = await send(path, { method })

  expect(answer.status).toBe(405)
  expect(answer.headers.get('allow')).toBe(allowed)
})

test('a service without links has none', async () => {
  const logger = createLogger({ level: 'silent' })
  const app = createHttpApp({ api: null, registry: new Registry(), checks: {}, logger, trustProxy: 0 })
  const bare = await listen({ app, host: '127.0.0.1', port: 0, logger })

  const answer = await fetch(`${bare.url}/u/${tokens.unsubscribe(leaving)}`)
  await bare.close(0)

  expect(answer.status).toBe(404)
})

function multipart(): FormData {
  const data = new FormData()
  data.set('List-Unsubscribe', 'One-Click')
  return data
}
