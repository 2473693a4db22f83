import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { openDashboard, shown } from '../support/dashboard.ts'
import { signUp } from '../support/people.ts'
import { untilLogged } from '../support/request-logs.ts'
import { startTestService, type TestService } from '../support/service.ts'

const secret = 'whsec_only_the_endpoint_knows'

describeInBrowser('requests in the dashboard', { timeout: 120_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let page: Page
  let root: string

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService(), startBrowser()])
    root = `/app/${service.accountId}/live`
    ;({ page } = await openDashboard(chromium.browser, service, { person: await signUp(service) }))
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
})
