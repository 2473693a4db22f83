import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { deadUrl } from '../support/fixtures.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { hostileTexts } from './support/hostile.ts'
import { rounds } from './support/rounds.ts'

/** The documentation takes its time: it is for the long round. */
const isLong = rounds({ short: 0, long: 1 }) > 0

/** All of them at once; the longest field holds 500 characters. */
const text = Object.values(hostileTexts).join('').slice(0, 500)

describeInBrowser('text of strangers in a browser', { timeout: 90_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let page: Page
  /** Signs that text was taken as HTML or a script: dialogs, errors, and requests to other origins. */
  const harm: string[] = []

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService({ roles: { worker: false } }), startBrowser()])
    await service.client.succeed(contract.webhooks.create, {
      body: { url: deadUrl, events: ['contact.created'], description: text },
    })
    await service.client.succeed(contract.subscribers.create, {
      body: { email: 'a@example.com', firstName: text.slice(0, 200) },
    })
    page = await chromium.browser.newPage()
    page.setDefaultTimeout(30_000)
    page.on('dialog', (dialog) => harm.push(`a dialog: ${dialog.message()}`))
    page.on('pageerror', (error) => harm.push(String(error)))
    page.on('console', (message) => {
      if (message.type() === 'error' && !/status of 40\d/.test(message.text())) harm.push(message.text())
    })
    page.on('request', (request) => {
      if (!request.url().startsWith(`${service.url}/`) && !request.url().startsWith('data:')) harm.push(request.url())
    })
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
  })

  test.runIf(isLong)(
    'text of strangers in a browser is shown as text by the documentation, and runs nothing',
    async () => {
      await page.goto(`${service.url}/docs`)
      await page.getByRole('button', { name: 'Authorize' }).first().click()
      const dialog = page.locator('.modal-ux')
      const form = dialog.locator('form').filter({ hasText: 'bearer (http' })
      await form.locator('input').fill(service.keys.live)
      await form.getByRole('button', { name: 'Apply credentials' }).click()
      await form.getByRole('button', { name: 'Close' }).click()
      for (const id of ['listWebhooks', 'listSubscribers']) {
        const block = page.locator(`[id$="-${id}"]`)
        await block.locator('.opblock-summary-control').click()
        await block.getByRole('button', { name: 'Execute' }).click()
        const answer = block.locator('.live-responses-table .response').first()
        await answer.waitFor()
        expect(await answer.innerText()).toContain("<script>document.title='owned'</script>")
      }
      expect(await page.locator('img[src="x"], .live-responses-table script').count()).toBe(0)
      expect(await page.title()).toBe('Postern API')
      expect(harm).toEqual([])
    },
  )

  const pages = [
    ['an answer', '/v1/webhooks'],
    ['a refusal of what is no identifier', '/v1/webhooks/<script>document.title=1</script>'],
    ['a refusal of a query', '/v1/webhooks?<script>document.title=1</script>=1'],
    ['a path that is not there', '/<script>document.title=1</script>'],
  ] as const
  test.each(pages.slice(0, rounds({ short: 1, long: pages.length })))(
    'text of strangers in a browser is no page where a browser is led to it: %s',
    async (_, path) => {
      await page.setExtraHTTPHeaders({ authorization: `Bearer ${service.keys.live}` })
      const response = await page.goto(service.url + path)
      expect(response?.headers()['content-type']).toBe('application/json; charset=utf-8')
      expect(await page.evaluate('document.contentType')).toBe('application/json')
      expect(await page.locator('script, img').count()).toBe(0)
      expect(await page.title()).toBe('')
      expect(harm).toEqual([])
    },
  )
})
