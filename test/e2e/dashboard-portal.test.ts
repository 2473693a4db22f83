import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, Frame, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { freePort } from '../../scripts/support/free-port.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { desktop, openDashboard, phone, screenFaults } from '../support/dashboard.ts'
import { signUp } from '../support/people.ts'
import { makePortalLink, openLink } from '../support/portal.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Runs in a browser that takes it for HTML, and renames the page. */
const script = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

/** A name that the browser takes for another machine. */
const otherHost = 'postern.test'

type Site = { url: string; server: Server }

/** A site of others, on another host than the service, that shows `link` in a frame. */
async function startSite(link: () => string): Promise<Site> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' })
    response.end(
      `<!doctype html><html lang="en"><title>Shop</title><h1>Shop</h1><iframe src="${link()}" title="Webhooks" width="1000" height="800"></iframe>`,
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://localhost:${(server.address() as AddressInfo).port}`, server }
}

type Opened = { page: Page; complaints: string[] }

async function openPage(
  browser: Browser,
  options: { viewport?: typeof desktop; colorScheme?: 'light' | 'dark' } = {},
): Promise<Opened> {
  const context = await browser.newContext({ viewport: desktop, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const complaints: string[] = []
  page.on('console', (message) => {
    // Without TLS a browser ignores that header, and says so.
    const isWanted = /status of 40[0-9]|Cross-Origin-Opener-Policy header has been ignored/.test(message.text())
    if (['error', 'warning'].includes(message.type()) && !isWanted) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  return { page, complaints }
}

async function frameOf(page: Page): Promise<Frame> {
  const frame = await (await page.waitForSelector('iframe')).contentFrame()
  if (frame === null) throw new Error('the page shows no frame')
  return frame
}

describeInBrowser('the portal in a browser', { timeout: 120_000 }, () => {
  let link = ''
  let shopOrigin = ''
  let site: Site
  let strangers: Site
  let service: TestService
  let chromium: TestBrowser
  let receiver: Receiver

  beforeAll(async () => {
    ;[site, strangers, chromium, receiver] = await Promise.all([
      startSite(() => link),
      startSite(() => link),
      startBrowser({ ownHosts: [otherHost] }),
      startReceiver(),
    ])
    shopOrigin = `http://localhost:${await freePort()}`
    service = await startTestService({ portalOrigins: [site.url, shopOrigin] })
    receiver.respond(answer(500, { body: script }))
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
    await receiver?.stop()
    for (const { server } of [site, strangers]) server?.close()
  })

  /** Runs the server of the guide. */
  async function startShop(): Promise<{ url: string; stop(): void }> {
    const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/customer-portal.md'), 'utf8')
    const code = /```js\n([\s\S]*?)```/.exec(guide)?.[1] ?? ''
    const port = Number(new URL(shopOrigin).port)
    const env = { ...process.env, SERVICE: service.url, KEY: service.keys.live, PORT: String(port) }
    const child = spawn(process.execPath, ['--input-type=module', '--eval', code], { env, stdio: 'inherit' })
    await expect
      .poll(() =>
        fetch(shopOrigin).then(
          ({ ok }) => ok,
          () => false,
        ),
      )
      .toBe(true)
    return { url: shopOrigin, stop: () => void child.kill() }
  }

  test('a customer in a frame of another site makes a webhook, tests it and sees why it fails, and nothing of others', async () => {
    await service.client.succeed(contract.webhooks.create, {
      body: { url: `${receiver.url}/other`, events: ['contact.created'], metadata: { customer: '43' } },
    })
    const { page, complaints } = await openPage(chromium.browser)
    const shop = await startShop()
    await page.goto(shop.url)
    const frame = await frameOf(page)
    await frame.getByRole('heading', { name: 'No webhooks yet' }).waitFor()
    expect(frame.url()).not.toContain('code')

    await frame.getByRole('button', { name: 'Add webhook' }).first().click()
    await frame.getByLabel('URL').fill(`${receiver.url}/mine`)
    await frame.getByLabel('contact.created').check()
    expect(await frame.getByRole('checkbox').count()).toBe(2)
    await frame.getByLabel('Description').fill(script)
    await frame.getByRole('dialog').getByRole('button', { name: 'Add webhook' }).click()
    await frame.getByText(/^whsec_/).waitFor()
    await frame.getByRole('button', { name: 'I have copied it' }).click()
    await frame.getByRole('heading', { name: `${receiver.url}/mine` }).waitFor()

    await frame.getByRole('button', { name: 'Send a test' }).click()
    await frame.getByRole('button', { name: 'Send it' }).click()
    await frame.getByText('The endpoint did not accept it').waitFor()
    await frame.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click()
    await frame.getByRole('table').getByRole('link', { name: 'contact.created' }).click()
    await frame.getByText(script).waitFor()
    await frame.getByRole('heading', { name: 'Body of the request' }).waitFor()
    await frame.getByText('"audienceId"').waitFor()

    // Without a new link: the cookie lets the frame in again.
    await frame.getByRole('link', { name: 'Webhooks', exact: true }).click()
    await frame.evaluate('window.isOld = true; location.reload()')
    await expect.poll(() => frame.evaluate('window.isOld === undefined')).toBe(true)
    await frame.getByRole('link', { name: `${receiver.url}/mine` }).waitFor()
    expect(await frame.getByText('/other').count()).toBe(0)
    shop.stop()
    expect(await page.title()).toBe('Shop')
    expect(await page.context().cookies()).toMatchObject([
      { name: expect.stringMatching(/^postern_portal_/), httpOnly: true, secure: true, sameSite: 'None' },
    ])
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('the portal works without TLS on a host of another machine, where no cookie is sent from a frame, as long as the page stays', async () => {
    const { page, complaints } = await openPage(chromium.browser)
    link = (await makePortalLink(service, { customer: 'cookieless' })).replace('127.0.0.1', otherHost)
    await page.goto(site.url)
    const frame = await frameOf(page)
    await frame.getByRole('heading', { name: 'No webhooks yet' }).waitFor()
    await frame.getByRole('link', { name: 'Event types', exact: true }).click()
    await frame.getByRole('link', { name: 'email.bounced' }).waitFor()

    // There is no clipboard either: what is to be copied is selected.
    const note = frame.getByText('The text is selected: copy it with Ctrl+C')
    await frame.getByRole('button', { name: 'Copy the code' }).click()
    await note.waitFor()
    const code = frame.locator('pre.block').first()
    expect(await frame.evaluate('String(getSelection())')).toBe((await code.innerText()).trimEnd())
    await frame.getByRole('link', { name: 'Webhooks', exact: true }).click()
    await frame.getByRole('button', { name: 'Add webhook' }).first().click()
    await frame.getByLabel('URL').fill(`${receiver.url}/cookieless`)
    await frame.getByLabel('email.bounced').check()
    await frame.getByRole('dialog').getByRole('button', { name: 'Add webhook' }).click()
    const button = frame.getByRole('button', { name: /^Copy the secret/ })
    const secret = (await button.innerText()).trim()
    await button.click()
    await note.waitFor()
    await page.keyboard.press('Control+C')
    await frame.getByRole('button', { name: 'I have copied it' }).click()
    await frame.getByRole('link', { name: 'Code in Node, Python' }).click()
    const field = frame.getByLabel('Signing secret', { exact: true })
    await field.focus()
    await page.keyboard.press('Control+V')
    expect(await field.inputValue()).toBe(secret)
    await page.reload()
    await (await frameOf(page)).getByRole('heading', { name: 'This page has ended' }).waitFor()
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('a site that is not allowed shows neither the portal nor the dashboard in a frame', async () => {
    const { page, complaints } = await openPage(chromium.browser)
    for (const [url, path] of [
      [strangers.url, ''],
      [site.url, '/app/'],
    ] as const) {
      const made = await makePortalLink(service, { customer: 'framed' })
      link = path === '' ? made : `${service.url}${path}`
      await page.goto(url)
      await expect.poll(() => complaints.some((complaint) => complaint.includes('frame-ancestors'))).toBe(true)
      expect(await (await frameOf(page)).getByRole('heading').count()).toBe(0)
      // It was not opened.
      if (path === '') expect((await openLink(service, made)).status).toBe(201)
      complaints.length = 0
    }
    await page.context().close()
  })

  test.each([
    { colorScheme: 'light', viewport: desktop },
    { colorScheme: 'dark', viewport: phone },
  ] as const)(
    'the portal as a page of its own, in $colorScheme, $viewport.width pixels wide: axe finds nothing, in a bright colour too',
    async ({ colorScheme, viewport }) => {
      const customer = `looks ${viewport.width} ${script}`
      const url = `${receiver.url}/?name='%22%3E${encodeURIComponent(script)}`
      const { id } = await service.client.succeed(contract.webhooks.create, {
        body: { url, events: ['contact.created'], description: script, metadata: { customer } },
      })
      await service.client.succeed(contract.webhooks.test, { params: { id }, body: {} })
      const since = new Date().toISOString()
      await service.client.succeed(contract.deliveries.recover, { params: { id }, body: { since } })
      const { data } = await service.client.succeed(contract.deliveries.list, { params: { id }, query: {} })
      const { page, complaints } = await openPage(chromium.browser, { viewport, colorScheme })
      const theme = { accentColor: '#ffd400' }
      await page.goto(await makePortalLink(service, { customer, theme }))
      await page.getByRole('link', { name: receiver.url }).waitFor()
      const base = page.url().replace(/\/webhooks$/, '')
      const faults: string[] = []
      for (const screen of [
        'webhooks',
        `webhooks/${id}`,
        `webhooks/${id}/receiver`,
        `webhooks/${id}/deliveries/${data[0]?.id}`,
        'event-types',
        'event-types/email.clicked',
      ]) {
        await page.goto(`${base}/${screen}`)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' })
        await keepScreenshots(page, `portal-${screen}`)
        faults.push(...(await screenFaults(page)).map((fault) => `${screen}: ${fault}`))
        expect(await page.evaluate('document.documentElement.scrollWidth'), screen).toBe(viewport.width)
        expect(await page.getByRole('alert').count(), screen).toBe(0)
        expect(await page.title()).not.toBe('owned')
      }
      expect(faults).toEqual([])
      expect(complaints).toEqual([])
      await page.context().close()
    },
  )

  test('a link that is made in the dashboard shows a customer their webhooks until the session is ended', async () => {
    // Turns the words behind it around, where the name is not kept apart from them.
    const customer = `\u202e${script} \u05e9\u05dc\u05d5\u05dd `.padEnd(500, 'x')
    const mine = `${receiver.url}/of-the-link`
    const { id } = await service.client.succeed(contract.webhooks.create, {
      body: { url: mine, events: ['contact.created'], metadata: { customer } },
    })
    const opened = await openDashboard(chromium.browser, service, { person: await signUp(service), viewport: phone })
    const { page, context, complaints } = opened
    const [main, dialog] = [page.getByRole('main'), page.getByRole('dialog')]
    /** Looks at the screen, or the dialog on it, as it is now. */
    async function expectNoFaults(name: string): Promise<void> {
      await keepScreenshots(page, `portal-sessions-${name}`)
      expect(await screenFaults(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
      expect(await page.title()).toMatch(/ · Ours · Postern$/)
    }
    await page.goto(`/app/${service.accountId}/live/webhooks/${id}`)
    await main.getByRole('link').filter({ hasText: customer }).click()
    await page.getByRole('heading', { level: 1, name: 'Customer portal' }).waitFor()
    await page.getByRole('heading', { name: 'No session of this customer is open' }).waitFor()

    const refusal = { error: { code: 'authentication_error', message: 'Not for you.' } }
    await page.route('**/v1/event-types', (route) => route.fulfill({ status: 403, json: refusal }))
    await main.getByRole('button', { name: 'Create a link' }).click()
    const field = dialog.getByLabel('Customer', { exact: true })
    expect(await field.inputValue()).toBe(customer)
    await dialog.getByLabel('Chosen', { exact: true }).check()
    await dialog.getByText('Not for you.').waitFor()
    await page.unroute('**/v1/event-types')
    await dialog.getByRole('button', { name: 'Try again' }).click()
    await dialog.getByRole('group', { name: 'Chosen event types' }).getByLabel('email.bounced').waitFor()
    await dialog.getByRole('button', { name: 'Create link' }).click()
    await dialog.getByText('Choose at least one event type').waitFor()
    await dialog.getByLabel('contact.created').check()
    await dialog.getByLabel('Accent color').fill('#0f766e')
    await dialog.getByLabel('Color scheme').selectOption('dark')
    await expectNoFaults('create')
    // A form that was closed now would lose the link that is on its way.
    const held = Promise.withResolvers<void>()
    await page.route('**/v1/portal-sessions', async (route) => {
      await held.promise
      await route.continue()
    })
    const sent = page.waitForRequest('**/v1/portal-sessions')
    await dialog.getByRole('button', { name: 'Create link' }).click()
    await sent
    await page.keyboard.press('Escape')
    await page.mouse.click(5, 5)
    held.resolve()
    await dialog.getByText('It works once, for 5 minutes').waitFor()
    await page.unroute('**/v1/portal-sessions')
    expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toMatch(/^Copy the link/)
    await page.keyboard.press('Escape')
    await page.mouse.click(5, 5)
    const link = (await dialog.getByRole('button', { name: /^Copy the link/ }).innerText()).trim()
    await expectNoFaults('link')

    const [portal] = await Promise.all([
      context.waitForEvent('page'),
      dialog.getByRole('link', { name: 'Open it' }).click(),
    ])
    await portal.getByRole('link', { name: mine }).waitFor()
    expect(await portal.evaluate('window.opener')).toBeNull()
    expect(await portal.evaluate('document.documentElement.dataset.mantineColorScheme')).toBe('dark')
    const shade = 'getComputedStyle(document.documentElement).getPropertyValue("--mantine-color-accent-7")'
    expect(await portal.evaluate(shade)).toBe('#0f766e')
    await portal.getByRole('link', { name: 'Event types', exact: true }).click()
    await portal.getByRole('link', { name: 'contact.created' }).waitFor()
    expect(await portal.getByRole('table').getByRole('link').count()).toBe(1)
    expect((await openLink(service, link)).status).toBe(404)

    await dialog.getByRole('button', { name: 'Done' }).click()
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toBe('Create a link')
    expect(await page.content()).not.toContain(link.slice(link.indexOf('#')))
    await main.getByText(/^Opened, ends/).waitFor()
    await main.getByRole('button', { name: 'Filters (set)' }).click()
    await main.getByLabel('Customer').fill('nobody')
    await main.getByLabel('Customer').press('Enter')
    await page.getByRole('heading', { name: 'No session of this customer is open' }).waitFor()
    expect(new URL(page.url()).search).toBe('?customer=nobody')
    // The customer is compared as a whole: spaces belong to it.
    await main.getByLabel('Customer').fill(' nobody')
    await main.getByLabel('Customer').press('Tab')
    await expect.poll(() => new URL(page.url()).searchParams.get('customer')).toBe(' nobody')
    await main.getByRole('button', { name: 'Clear the filters' }).click()
    const row = main.getByRole('row').filter({ hasText: customer })
    await row.getByRole('button', { name: /^End the session of .+, created .*\d:\d\d/s }).waitFor()
    await row.waitFor()
    await expectNoFaults('list')
    await row.getByRole('button', { name: /^End/ }).click()
    await dialog.getByText(customer).waitFor()
    await expectNoFaults('end')
    await dialog.getByRole('button', { name: 'End the session' }).click()
    await page.getByText('The session has ended.').waitFor()
    await portal.reload()
    await portal.getByRole('heading', { name: 'This page has ended' }).waitFor()
    await row.waitFor({ state: 'detached' })

    // One that has ended meanwhile is ended: there is nothing to tell of it.
    await makePortalLink(service, { customer: 'gone' })
    const gone = main.getByRole('row').filter({ hasText: 'gone' })
    await gone.getByRole('button', { name: /^End/ }).click()
    const { data } = await service.client.succeed(contract.portalSessions.list, { query: { customer: 'gone' } })
    await service.client.succeed(contract.portalSessions.delete, { params: { id: data[0]?.id ?? '' } })
    await dialog.getByRole('button', { name: 'End the session' }).click()
    await dialog.waitFor({ state: 'detached' })
    await gone.waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
    await context.close()
  })
})
