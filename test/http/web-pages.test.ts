import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createWebPages, type WebPages } from '../../server/campaigns/web-pages.ts'
import { createHttpApp } from '../../server/http/express-app.ts'
import { type HttpServer, listen } from '../../server/http/server.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createRenderer } from '../../server/rendering/renderer.ts'
import { newId } from '../../server/shared/ids.ts'
import { createRendererTurns } from '../../server/templates/renderer-turns.ts'
import { testing } from '../support/scope.ts'
import { type CampaignWorld, createCampaignWorld } from '../support/worlds/campaigns.ts'

const renderer = createRenderer()
/** The key of the world. */
const tokens = createMailTokens(Buffer.alloc(32, 2))
const html =
  '<h1>Hello {{ contact.firstName | default: "friend" }} {{ contact.email }}{{ contact.id }} {{ properties.plan }}</h1>' +
  '<script>alert(1)</script><a href="{{ webUrl }}">web</a> <a href="{{ unsubscribeUrl }}">out</a> {{ preferencesUrl }}'

let world: CampaignWorld
let server: HttpServer
let pages: WebPages
let audience: string
let person: string
/** How often a message was rendered for a page. */
let rendered = 0

beforeAll(async () => {
  world = await createCampaignWorld(renderer)
  const { db, account, live, properties, contacts } = world
  await properties.create(db, account, { key: 'plan', type: 'string', fallback: 'free' })
  audience = await world.addAudience(0)
  const ada = { email: 'ada@example.org', firstName: 'Ada', properties: { plan: 'pro' } }
  person = (await contacts.add(db, live, audience, ada)).subscriberId
  const counting: typeof renderer.render = (...input) => {
    rendered++
    return renderer.render(...input)
  }
  const rendererOf = createRendererTurns({ ...renderer, render: counting })
  pages = createWebPages({ ...world.means, tokens, rendererOf })
  const logger = createLogger({ level: 'silent' })
  const app = createHttpApp({ api: null, webPages: pages, registry: new Registry(), checks: {}, logger, trustProxy: 0 })
  server = await listen({ app, host: '127.0.0.1', port: 0, logger })
})
afterAll(async () => {
  await server.close(0)
  await world[Symbol.asyncDispose]()
  await renderer[Symbol.asyncDispose]()
})

async function get(path: string, init: RequestInit = {}) {
  const { status, headers, ...response } = await fetch(server.url + path, init).then(async (answer) => ({
    status: answer.status,
    headers: answer.headers,
    body: await answer.text(),
  }))
  return { status, headers, body: response.body }
}

async function sent(fields = {}, scope = world.live): Promise<string> {
  const { campaigns, db } = world
  const campaign = { name: 'News', from: 'Shop <hello@shop.test>', audienceId: audience, subject: 'Spring', ...fields }
  const { id } = await campaigns.create(db, scope, { content: { html }, ...campaign })
  await campaigns.send(db, scope, id, null)
  await world.run()
  return id
}

const pathOf = (url: string | null) => new URL(url ?? '').pathname

async function emailOf(id: string): Promise<{ id: string; path: string }> {
  const email = await world.db.selectFrom('emails').select('id').where('campaign_id', '=', id).executeTakeFirstOrThrow()
  return { id: email.id, path: pathOf(world.means.webUrl({ accountId: world.account, emailId: email.id })) }
}

test('the link to read a message in a browser shows it as this person got it, where nothing of it can act, and no search engine lists it', async () => {
  const { path, id } = await emailOf(await sent())
  const page = await get(path)
  expect(page.status).toBe(200)
  expect(page.body).toContain('<h1>Hello Ada ada@example.org')
  expect(page.body).toContain(`href="https://mail.example${path}"`)
  const from = { emailId: id, position: 0, accountId: world.account, address: 'ada@example.org' }
  expect(page.body).toContain(`href="${world.means.unsubscribeUrl(from)}"`)
  const policy = page.headers.get('content-security-policy') ?? ''
  expect(policy.split('; ')).toEqual(
    expect.arrayContaining([
      'sandbox allow-popups allow-popups-to-escape-sandbox',
      "default-src 'none'",
      "form-action 'none'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ]),
  )
  expect(policy).not.toMatch(/script|allow-same-origin|allow-forms|allow-top/)
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(page.headers.get('x-robots-tag')).toBe('noindex')
  expect(page.headers.get('referrer-policy')).toBe('no-referrer')
  expect(page.headers.get('cache-control')).toBe('no-store')
})

test('the link to read a message in a browser shows a test of a campaign, and text as text', async () => {
  const { campaigns, db, live } = world
  const { id } = await campaigns.create(db, live, {
    ...{ name: 'News', from: 'Shop <hello@shop.test>', audienceId: audience, subject: '<i>Spring</i>' },
    content: { text: '<b>{{ contact.email }}</b> {{ webUrl }}' },
  })
  const [emailId = ''] = await campaigns.test(db, live, id, { to: ['me@shop.test'] })
  const page = await get(pathOf(world.means.webUrl({ accountId: world.account, emailId })))
  expect(page.status).toBe(200)
  expect(page.body).toContain('&lt;b&gt;me@shop.test&lt;/b&gt;')
  expect(page.body).toContain('<h1>&lt;i&gt;Spring&lt;/i&gt;</h1>')
  expect(page.headers.get('content-security-policy')).not.toContain('unsafe-inline')
})

test('the link to read a message in a browser says plainly that a message is gone with its campaign or its email, and that a link is not whole', async () => {
  const id = await sent()
  const { path } = await emailOf(id)
  await world.campaigns.cancel(world.db, world.live, id).catch(() => undefined)
  await world.db.updateTable('campaigns').set({ deleted_at: new Date() }).where('id', '=', id).execute()
  const deleted = await get(path)
  expect(deleted.status).toBe(410)
  expect(deleted.body).toContain('This message is not available')
  expect(deleted.body).not.toContain('Hello')
  const expired = { accountId: world.account, emailId: newId('email', new Date()) }
  expect((await get(pathOf(world.means.webUrl(expired)))).status).toBe(410)
  const other = await emailOf(await sent())
  const stranger = { accountId: world.stranger, emailId: other.id }
  expect((await get(pathOf(world.means.webUrl(stranger)))).status).toBe(410)
  expect((await get(`${path.slice(0, -1)}A`)).status).toBe(404)
  // A token for one purpose is none for another.
  expect((await get(path.replace('/w/', '/a/'))).status).toBe(404)
  expect((await get(path, { method: 'POST' })).status).toBe(405)
})

test('the page of a public campaign has the fallbacks for a person, no link of anybody, and is rendered once', async () => {
  const id = await sent({ archive: 'public' })
  const { archiveUrl } = await world.campaigns.get(world.db, world.live, id)
  rendered = 0
  const [page] = await Promise.all([get(pathOf(archiveUrl)), get(pathOf(archiveUrl))])
  expect(page.status).toBe(200)
  expect(page.body).toContain('<h1>Hello friend  free</h1>')
  for (const own of ['Ada', 'ada@', person, '/u/', '/w/']) expect(page.body).not.toContain(own)
  expect(page.body).toContain(`<a href="${archiveUrl}">web</a> <a href="${archiveUrl}/unsubscribe">out</a>`)
  expect(page.headers.get('x-robots-tag')).toBeNull()
  expect(page.headers.get('content-security-policy')).toMatch(/^sandbox allow-popups/)
  await get(pathOf(archiveUrl))
  expect(rendered).toBe(1)

  for (const end of ['/unsubscribe', '/unsubscribe/preferences']) {
    const link = await get(pathOf(archiveUrl) + end)
    expect(link.status).toBe(200)
    expect(link.body).toContain('Use the link in your own email')
    expect(link.body).not.toContain('<form')
  }
})

test('the page of a public campaign is there once it has started, as long as it is public, and not listed in test mode', async () => {
  const { campaigns, db, live, account } = world
  const draft = await campaigns.create(db, live, {
    ...{ name: 'News', from: 'Shop <hello@shop.test>', audienceId: audience, subject: 'Spring' },
    ...{ content: { html }, archive: 'public' },
  })
  const path = pathOf(draft.archiveUrl)
  expect((await get(path)).status).toBe(410)
  await campaigns.send(db, live, draft.id, null)
  await world.run()
  expect((await get(path)).status).toBe(200)

  expect(await campaigns.update(db, live, draft.id, { archive: 'none' })).toMatchObject({ archiveUrl: null })
  expect((await get(path)).status).toBe(410)
  await campaigns.update(db, live, draft.id, { archive: 'public' })
  expect((await get(path)).status).toBe(200)
  await expect(campaigns.update(db, live, draft.id, { archive: 'none', name: 'Old' })).rejects.toMatchObject({
    code: 'campaign_state',
  })

  const tried = await sent({ archive: 'public' }, testing(account))
  const { archiveUrl } = await campaigns.get(db, testing(account), tried)
  expect((await get(pathOf(archiveUrl))).headers.get('x-robots-tag')).toBe('noindex')
})

test('the page of a public campaign is to be tried again when it cannot be rendered for nobody now, and is not kept like that', async () => {
  const id = await sent({
    archive: 'public',
    content: {
      html: '{% if contact.id == null %}{% for i in (1..1000000000) %}x{% endfor %}{% endif %}',
    },
  })
  const { archiveUrl } = await world.campaigns.get(world.db, world.live, id)
  rendered = 0
  for (const times of [1, 2]) {
    const page = await get(pathOf(archiveUrl))
    expect([page.status, page.headers.get('retry-after')]).toEqual([503, '10'])
    expect(rendered).toBe(times)
  }
})

test('of one account four pages are read at once, and the next one when one of them was', async () => {
  const { path } = await emailOf(await sent())
  const token = path.slice('/w/'.length)
  const reading: (() => void)[] = []
  const read = () => pages.ofEmail(token, () => new Promise((resolve) => reading.push(resolve)))
  const readers = Array.from({ length: 4 }, read)
  await vi.waitFor(() => expect(reading).toHaveLength(4))
  let isRead = false
  const fifth = pages.ofEmail(token, async ({ status }) => {
    isRead = status === 'shown'
  })
  // Another account goes on: so does what follows it in the database.
  const stranger = { accountId: world.stranger, emailId: newId('email', new Date()) }
  expect((await get(pathOf(world.means.webUrl(stranger)))).status).toBe(410)
  expect(isRead).toBe(false)
  reading.shift()?.()
  await fifth
  expect(isRead).toBe(true)
  for (const end of reading) end()
  await Promise.all(readers)
})
