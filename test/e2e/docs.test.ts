import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { operations, publishedSpec } from '../support/published-spec.ts'
import { startTestService, type TestService } from '../support/service.ts'

describeInBrowser('the documentation in a browser', { timeout: 90_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let page: Page
  const complaints: string[] = []

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService({ roles: { worker: false } }), startBrowser()])
    page = await chromium.browser.newPage()
    page.setDefaultTimeout(30_000)
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on('requestfailed', (request) => complaints.push(`${request.url()} failed`))
    page.on('request', (request) => {
      const isOurs = request.url().startsWith(`${service.url}/`) || request.url().startsWith('data:')
      if (!isOurs) complaints.push(`${request.url()} is not ours`)
    })
    await page.goto(`${service.url}/docs`)
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
  })

  /** Opens an operation, calls it as it stands there, and answers the status the page shows. */
  async function tryOut(id: string): Promise<{ status: string; block: Locator }> {
    const block = page.locator(`[id$="-${id}"]`)
    await block.locator('.opblock-summary-control').click()
    await block.getByRole('button', { name: 'Execute' }).click()
    const status = block.locator('.live-responses-table .response .response-col_status').first()
    await status.waitFor()
    return { status: (await status.innerText()).trim(), block }
  }

  test('the documentation in a browser shows every operation and every event', async () => {
    const events = Object.keys(publishedSpec.webhooks ?? {})
    await expect.poll(() => page.locator('.opblock').count()).toBe(operations.length + events.length)
  })

  test('the documentation in a browser says so when there is no key', async () => {
    const { status } = await tryOut('listAudiences')
    expect(status).toMatch(/^401/)
  })

  test('the documentation in a browser takes the key', async () => {
    await page.getByRole('button', { name: 'Authorize' }).first().click()
    const dialog = page.locator('.modal-ux')
    // The other form is of sessions, which no page but the dashboard can use.
    const form = dialog.locator('form').filter({ hasText: 'bearer (http' })
    await form.locator('input').fill(service.keys.live)
    await form.getByRole('button', { name: 'Apply credentials' }).click()
    await form.getByRole('button', { name: 'Close' }).click()
    await dialog.waitFor({ state: 'detached' })
  })

  test('the documentation in a browser lists the event types', async () => {
    const { status, block } = await tryOut('listEventTypes')
    expect(status).toMatch(/^200/)
    expect(await block.locator('.live-responses-table').innerText()).toContain('subscriber.added')
  })

  test('the documentation in a browser creates a webhook from the example', async () => {
    const { status } = await tryOut('createWebhook')
    expect(status).toMatch(/^201/)
    const { data } = await service.client.succeed(contract.webhooks.list, { query: {} })
    expect(data).toMatchObject([{ url: 'https://example.com/hooks' }])
  })

  test('the documentation in a browser broke no rule of its Content-Security-Policy, asked nobody else and had no error but the 401', () => {
    expect(complaints.filter((complaint) => !complaint.includes('401 (Unauthorized)'))).toEqual([])
    expect(complaints).toHaveLength(1)
  })

  test('the documentation in a browser would not run a script that somebody got into it', async () => {
    complaints.length = 0
    await page.addScriptTag({ content: 'document.title = "owned"' }).catch(() => undefined)
    await expect.poll(() => complaints.join('\n')).toContain('Content Security Policy')
    expect(await page.title()).toBe('Postern API')
  })
})
