import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { desktop, openDashboard, phone, shown } from '../support/dashboard.ts'
import { type Person, pageHeaders, signUp } from '../support/people.ts'
import { untilLogged } from '../support/request-logs.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { startTestService, type TestService } from '../support/service.ts'

const secret = 'whsec_only_the_endpoint_knows'

describeInBrowser('requests in the dashboard', { timeout: 120_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let page: Page
  let person: Person
  let root: string

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService(), startBrowser()])
    root = `/app/${service.accountId}/live`
    person = await signUp(service)
    ;({ page } = await openDashboard(chromium.browser, service, { person }))
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
  })

  test('a failure is found among the requests, and tells why without the secret that was sent', async () => {
    const { client } = service
    const { key } = await client.succeed(contract.apiKeys.create, {
      body: { name: 'Shop', permissions: ['full_access'] },
    })
    const json = { url: `https://example.com/${secret}`, events: ['email.exploded'], description: secret }
    await client.send('GET', '/v1/webhooks', { key })
    await client.send('POST', `/v1/webhooks?${secret}=${secret}`, { key, json })
    await client.send('POST', '/v1/webhooks', { key, json })
    await untilLogged(service, { status: '400' })

    await page.goto(`${root}/settings/api-keys`)
    await page
      .getByRole('row', { name: /^Shop/ })
      .getByRole('link', { name: /its requests$/ })
      .click()
    await page.getByRole('heading', { name: 'Logs', level: 1 }).waitFor()
    await expect
      .poll(() => page.getByRole('table').getByRole('link').allInnerTexts())
      .toEqual(['POST /v1/webhooks', 'POST /v1/webhooks', 'GET /v1/webhooks'])
    await page.getByLabel('Failures').selectOption('4xx')
    await expect.poll(() => page.getByRole('table').getByRole('link').count()).toBe(2)
    expect(new URL(page.url()).searchParams.get('status')).toBe('4xx')
    await page.getByRole('table').getByRole('link').first().click()

    await page.getByRole('heading', { name: 'POST /v1/webhooks', level: 1 }).waitFor()
    await page.getByText('body.events[0]').waitFor()
    const text = await page.getByRole('main').innerText()
    expect(text).toContain('Validation error')
    expect(text).toContain('https://example.com/…')
    expect(text).not.toContain(secret)
    await page.getByRole('link', { name: 'Shop' }).click()
    await page.getByRole('heading', { name: 'Logs', level: 1 }).waitFor()
    await expect.poll(() => page.getByRole('table').getByRole('link').count()).toBe(3)
  })

  test('a new request comes in by itself', async () => {
    await page.goto(`${root}/logs?status=failed`)
    await shown(page)
    await service.client.send('DELETE', '/v1/domains/none')
    await page.getByRole('table').getByRole('link', { name: 'DELETE /v1/domains/…' }).waitFor()
  })

  /** Returns the texts of the rows of the table, and what of them cannot be read: it is cut off, or in a title alone. */
  async function rowsOf(screen: string): Promise<{ texts: string[]; unread: unknown }> {
    await page.goto(`${root}/settings/${screen}`)
    await shown(page)
    const { width } = page.viewportSize() ?? desktop
    if (width === phone.width) await keepScreenshots(page, `phone-${screen}`)
    const rows = page.getByRole('table').locator('tbody tr')
    const unread = await page.evaluate(`[...document.querySelectorAll('tbody tr')].flatMap((row) => [
      ...[...row.querySelectorAll('td, td :not(.visually-hidden)')].filter((part) => part.clientWidth > 0 && part.scrollWidth > part.clientWidth),
      ...[...row.querySelectorAll('[title]:not(time)')].filter((part) => !row.innerText.includes(part.title)),
    ].map((part) => part.outerHTML))`)
    return { texts: await rows.allInnerTexts(), unread }
  }

  test.each([phone, desktop])(
    'each datum of the audit log, the API keys and the sessions can be read, $width pixels wide',
    async (viewport) => {
      const { client } = service
      const name = 'Deployments of the web shop in the second data center'
      const permissions = ['emails:read', 'events:read', 'webhooks:read', 'webhooks:write', 'domains:read'] as const
      const { key } = await client.succeed(contract.apiKeys.create, {
        body: {
          name,
          permissions: [...permissions],
          expiresAt: '2100-01-01T00:00:00Z',
          allowedAddresses: ['127.0.0.0/8', '2001:db8:1234:5678::/64'],
        },
      })
      const caller = client.as(key)
      const { id } = await caller.succeed(contract.webhooks.create, {
        body: { url: 'https://hooks.shop.example/a/rather/long/path/of/events', events: ['email.sent'] },
      })
      await caller.succeed(contract.webhooks.update, {
        params: { id },
        body: { description: 'Orders', events: ['email.bounced'], status: 'disabled', metadata: { shop: '1' } },
      })
      const { data: keys } = await client.succeed(contract.apiKeys.list, { query: {} })
      const keyId = keys.find((one) => one.lastFour === key.slice(-4))?.id ?? ''
      const lastUse = () => client.succeed(contract.apiKeys.get, { params: { id: keyId } })
      await expect.poll(async () => (await lastUse()).lastUsedFrom).toBe('127.0.0.1')
      const chrome =
        'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/149.0.0.0 Safari/537.36'
      await client.send('POST', '/v1/session', {
        key: null,
        headers: { ...pageHeaders(service.url), 'user-agent': chrome },
        json: { email: person.email, password: person.password },
      })
      await page.setViewportSize(viewport)

      const log = await rowsOf('audit-log')
      expect(log.unread).toEqual([])
      const { data: entries } = contract.auditLog.list.responses[200].parse(
        (await person.send('GET', '/v1/audit-log')).body,
      )
      expect(entries.length).toBeGreaterThan(3)
      for (const [index, { at, actor, target, ipAddress, details }] of entries.entries()) {
        const who = actor.type === 'command_line' ? 'Command line' : actor.name
        const datums = [who, target.name ?? '', target.id, ipAddress ?? '', ...Object.entries(details).flat()]
        for (const datum of datums) expect(log.texts[index]).toContain(datum)
        if (viewport === phone) expect(log.texts[index]).toContain(String(new Date(at).getFullYear()))
      }

      const shownKeys = await rowsOf('api-keys')
      expect(shownKeys.unread).toEqual([])
      const row = shownKeys.texts.find((text) => text.startsWith(name))
      const addresses = ['127.0.0.0/8', '2001:db8:1234:5678::/64', '127.0.0.1']
      for (const datum of [key.slice(-4), ...permissions, ...addresses, 'Jan 1, 2100']) {
        expect(row).toContain(datum)
      }
      expect(row).toMatch(/Active\s/)
      if (viewport === phone) expect(row).toMatch(/Last used: (just now|.+ ago).*Created: (just now|.+ ago)/s)

      const sessions = await rowsOf('sessions')
      expect(sessions.unread).toEqual([])
      const { data: listed } = contract.sessions.list.responses[200].parse(
        (await person.send('GET', '/v1/sessions')).body,
      )
      expect(listed.map(({ userAgent }) => userAgent)).toContain(chrome)
      for (const [index, { userAgent, ipAddress }] of listed.entries()) {
        for (const datum of [userAgent, ipAddress]) expect(sessions.texts[index]).toContain(datum)
        if (viewport === phone)
          expect(sessions.texts[index]).toMatch(/Last used: (just now|.+ ago).*Signed in: (just now|.+ ago)/s)
      }
      await page.setViewportSize(desktop)
    },
  )
})
