import { createHash } from 'node:crypto'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createHttpApp } from '../../server/http/express-app.ts'
import { type HttpServer, listen } from '../../server/http/server.ts'
import { createMailTokens, type UnsubscribeRef } from '../../server/message/mail-tokens.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { liveKeyNeeded } from '../../server/shared/errors.ts'
import { newId } from '../../server/shared/ids.ts'
import {
  createMailLinks,
  type PreferencesChange,
  type PreferencesPage,
  type Visit,
} from '../../server/tracking/tracking.ts'

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
let saved: PreferencesChange[] = []
/** The content of the page of a link. */
let shown: PreferencesPage

const noBrand = { name: null, accentColor: null, text: null }
const person = { firstName: 'Ann', lastName: null, isUnsubscribed: false, topics: [] }
const ofLinks = {
  preferences: async ({ accountId }: UnsubscribeRef) => (accountId === gone.accountId ? null : shown),
  savePreferences: async (_: UnsubscribeRef, change: PreferencesChange) => {
    if (change.firstName === 'Test') throw liveKeyNeeded('Subscribing a person again')
    saved.push(change)
  },
  takeChange: () => saved.length < 3,
}

beforeAll(async () => {
  const mailLinks = createMailLinks({
    tokens,
    clock: { now: () => at },
    ...ofLinks,
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
  saved = []
  shown = { brand: noBrand, topic: null, preferences: null }
})

function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = { 'user-agent': userAgent, 'x-forwarded-for': '192.0.2.9', ...init.headers }
  return fetch(server.url + path, { redirect: 'manual', ...init, headers })
}

const visitor = { userAgent, ipAddress: '192.0.2.9', automated: false }

describe('the pixel', () => {
  const path = `/t/o/${tokens.pixel(recipient)}`

  test('the pixel is an image that no cache keeps, and tells who asked for it', async () => {
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
  ])('the pixel is the same image with %s, and tells nothing', async (_, wrong) => {
    const answer = await send(wrong)

    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe('image/gif')
    expect(visits).toEqual([])
  })

  test('the pixel tells nothing when it is only looked at', async () => {
    const answer = await send(path, { method: 'HEAD' })

    expect(answer.status).toBe(200)
    expect(visits).toEqual([])
  })

  test.each([
    ['a machine asks for it', { 'user-agent': 'curl/8.14.1' }],
    ['it is fetched ahead', { 'sec-purpose': 'prefetch;prerender' }],
    ['it is fetched ahead by an older browser', { 'x-moz': 'prefetch' }],
  ])('the pixel says so when %s', async (_, headers) => {
    await send(path, { headers })

    expect(visits).toEqual([expect.objectContaining({ kind: 'opened', automated: true })])
  })

  test('the pixel keeps only so much of what a client says of itself', async () => {
    await send(path, { headers: { 'user-agent': 'x'.repeat(5_000) } })

    expect(visits[0]?.userAgent).toBe('x'.repeat(500))
  })
})

describe('a link', () => {
  const path = `/t/c/${tokens.click({ ...recipient, link })}`

  test('a link leads where the email did, and tells who followed it', async () => {
    const answer = await send(path)

    expect(answer.status).toBe(302)
    expect(answer.headers.get('location')).toBe('https://shop.example/sale?a=1&b=%C3%BC#top')
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer')
    expect(visits).toEqual([{ kind: 'clicked', ...recipient, link, at, ...visitor }])
  })

  test('a link leads there too for who only looks, and tells nothing', async () => {
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
  ])('a link leads nowhere with %s', async (_, wrong) => {
    const answer = await send(wrong)

    expect(answer.status).toBe(404)
    expect(answer.headers.get('location')).toBeNull()
    expect(await answer.text()).toContain('This link does not work')
    expect(visits).toEqual([])
  })
})

const path = `/u/${tokens.unsubscribe(leaving)}`
const form = { 'content-type': 'application/x-www-form-urlencoded' }

test('the page to unsubscribe asks, changes nothing, and may do nothing but that', async () => {
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
])('unsubscribing is what %s does, without a redirect', async (_, init) => {
  const answer = await send(path, { method: 'POST', ...init })

  expect(answer.status).toBe(200)
  expect(await answer.text()).toContain('You are unsubscribed')
  expect(unsubscribed).toEqual([leaving])
})

test('unsubscribing again is no error', async () => {
  const answers = [await send(path, { method: 'POST' }), await send(path, { method: 'POST' })]

  expect(answers.map(({ status }) => status)).toEqual([200, 200])
})

test('unsubscribing many times at once is done once, and later again', async () => {
  const held = Promise.withResolvers<boolean>()
  const done: UnsubscribeRef[] = []
  const links = createMailLinks({
    tokens,
    clock: { now: () => at },
    ...ofLinks,
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
])('unsubscribing is not possible with %s', async (_, wrong) => {
  const answers = [await send(wrong), await send(wrong, { method: 'POST' })]

  expect(answers.map(({ status }) => status)).toEqual([404, 404])
  expect(unsubscribed).toEqual([])
})

test('unsubscribing is not possible any more once the account is gone', async () => {
  const answer = await send(`/u/${tokens.unsubscribe(gone)}`, { method: 'POST' })

  expect(answer.status).toBe(404)
  expect(await answer.text()).toContain('This link does not work')
})

describe('preferences', () => {
  const token = tokens.unsubscribe({ ...leaving, topicId: 'top_01jqz4x7m8e5v9t2k6r3w0y1ab' })
  const path = `/u/${token}/preferences`
  const offers = { id: 'top_01jqz4x7m8e5v9t2k6r3w0y1ab', name: 'Offers', description: null, isSubscribed: true }
  const news = { id: 'top_01jqz4x7m8e5v9t2k6r3w0y1ac', name: 'News', description: 'Monthly.', isSubscribed: false }
  const post = (fields: [string, string][]) => send(path, { method: 'POST', body: new URLSearchParams(fields) })

  test('preferences are shown behind the link, with forms that lead where they are saved', async () => {
    shown = { brand: { ...noBrand, name: 'Acme' }, topic: 'Offers', preferences: { ...person, topics: [offers, news] } }
    const [atLink, atPreferences] = [await send(`/u/${token}`), await send(path)]
    const [link, preferences] = [await atLink.text(), await atPreferences.text()]

    expect([atLink.status, atPreferences.status]).toEqual([200, 200])
    for (const html of [link, preferences]) {
      expect(html).toContain('Press the button to get no more emails about “Offers”.')
      expect(html).toContain(`<input type="checkbox" name="topic" value="${offers.id}" checked> Offers`)
      expect(html).toContain(`<input type="checkbox" name="topic" value="${news.id}"> News`)
      expect(html).toContain('value="Ann"')
    }
    const actions = (html: string) =>
      Array.from(html.matchAll(/<form method="post"(?: action="([^"]+)")?>/g), ([, to]) => to)
    const base = `${server.url}/u/${token}`
    const targets = (html: string, at: string) => actions(html).map((to) => new URL(to ?? at, at).href)
    expect(targets(link, base)).toEqual([base, `${base}/preferences`])
    expect(targets(preferences, `${base}/preferences`)).toEqual([base, `${base}/preferences`])
    expect([saved, unsubscribed]).toEqual([[], []])
  })

  test('preferences are saved by POST alone, and say so', async () => {
    shown = { ...shown, preferences: { ...person, topics: [offers, news] } }
    const answer = await post([
      ['firstName', '  Ada '],
      ['lastName', ''],
      ['shown', offers.id],
      ['shown', news.id],
      ['topic', news.id],
      ['action', 'save'],
    ])

    expect(answer.status).toBe(200)
    expect(await answer.text()).toContain('<p role="status">Your preferences are saved.</p>')
    expect(saved).toEqual([
      { firstName: 'Ada', lastName: null, shown: new Set([offers.id, news.id]), wanted: new Set([news.id]) },
    ])
    expect(unsubscribed).toEqual([])
  })

  test('preferences can be to leave everything, also by the link of a topic', async () => {
    const answer = await post([['action', 'leave']])

    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('You are unsubscribed')])
    expect(unsubscribed).toEqual([{ ...leaving, topicId: undefined }])
    expect(saved).toEqual([])
  })

  test('preferences take no name that the API would refuse', async () => {
    shown = { ...shown, preferences: person }
    const answers = [await post([['firstName', 'x'.repeat(201)]]), await post([['lastName', 'a\u0000b']])]

    expect(answers.map(({ status }) => status)).toEqual([400, 400])
    expect(await answers[0]?.text()).toContain('<p role="alert">Nothing was saved')
    expect(saved).toEqual([])
  })

  test('preferences of a person are changed so often in a minute', async () => {
    shown = { ...shown, preferences: person }
    const answers: Response[] = []
    for (let time = 0; time < 4; time++) answers.push(await post([['firstName', `Name ${time}`]]))

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    expect(await answers[3]?.text()).toContain('Wait a minute')
  })

  test('the link of a test email says on the page that it brings nobody back', async () => {
    shown = { ...shown, preferences: person }
    const answer = await post([['firstName', 'Test']])
    expect(answer.status).toBe(403)
    expect(await answer.text()).toContain('<p role="alert">Nothing was saved: this email was sent with a test key')
  })

  test.each([
    ['a token that is none', '/u/x/preferences'],
    ['a token of another purpose', `/u/${tokens.pixel(recipient)}/preferences`],
    ['a token made with another key', `/u/${createMailTokens(Buffer.alloc(32, 8)).unsubscribe(leaving)}/preferences`],
    ['an account that is gone', `/u/${tokens.unsubscribe(gone)}/preferences`],
  ])('preferences are not shown with %s', async (_, wrong) => {
    const answers = [await send(wrong), await send(wrong, { method: 'POST', body: 'action=save' })]

    expect(answers.map(({ status }) => status)).toEqual([404, 404])
  })

  test('preferences that are longer than any page sends are refused', async () => {
    expect((await send(path, { method: 'POST', body: `firstName=${'x'.repeat(40_000)}` })).status).toBe(413)
    expect(saved).toEqual([])
  })

  test('preferences are in the colors of the account, and have nothing in them that runs', async () => {
    const script = '"><script>alert(1)</script>\''
    const topic = { id: offers.id, name: script, description: script, isSubscribed: true }
    const brand = { name: script, accentColor: '#ffff00', text: script }
    shown = {
      brand,
      topic: script,
      preferences: { firstName: script, lastName: script, isUnsubscribed: false, topics: [topic] },
    }
    const answer = await send(path)
    const html = await answer.text()

    expect(html).not.toContain('<script')
    expect(html).not.toContain(script)
    expect(html.match(/&quot;&gt;&lt;script&gt;alert\(1\)&lt;\/script&gt;&#39;/g)).toHaveLength(8)
    const [, style = ''] = /<style>([^<]+)<\/style>/.exec(html) ?? []
    expect(style).toContain('background: #ffff00; color: #000000')
    const hash = createHash('sha256').update(style).digest('base64')
    expect(answer.headers.get('content-security-policy')).toContain(`style-src 'sha256-${hash}'`)
  })

  test('preferences of somebody who unsubscribed from everything say so, and offer nothing', async () => {
    shown = { ...shown, preferences: { ...person, isUnsubscribed: true, topics: [offers] } }
    const html = await (await send(path)).text()

    expect(html).toContain('You are unsubscribed from everything.')
    expect(html).not.toContain('type="checkbox"')
  })
})

test.each([
  ['POST', '/t/o/x', 'GET, HEAD'],
  ['DELETE', '/t/c/x', 'GET, HEAD'],
  ['PUT', '/u/x', 'GET, HEAD, POST'],
  ['DELETE', '/u/x/preferences', 'GET, HEAD, POST'],
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
