import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { accessibilityFaults, phone } from '../support/dashboard.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Runs in a browser that takes it for HTML, and renames the page. */
const script = `<img src=x onerror="document.title='owned'">`

describeInBrowser('the pages behind the links of an email', { timeout: 90_000 }, () => {
  let service: TestService
  let started: TestBrowser
  let browser: Browser
  /** An email to Ada. */
  let emailId: string
  let subscriberId: string

  beforeAll(async () => {
    service = await startTestService()
    started = await startBrowser()
    ;({ browser } = started)
    const { client } = service
    await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    const audience = await client.succeed(contract.audiences.create, { body: { name: script } })
    const ada = { email: 'ada@example.org', firstName: script }
    const contact = { params: { audienceId: audience.id }, body: ada }
    subscriberId = (await client.succeed(contract.contacts.add, contact)).subscriberId
    for (const name of ['News', script]) {
      await client.succeed(contract.topics.create, { body: { name, default: 'opt_out' } })
    }
    const email = { from: 'news@shop.test', to: ada.email, subject: 'Hello', text: 'Hello', audienceId: audience.id }
    emailId = (await client.succeed(contract.emails.send, { body: email })).id
  })
  afterAll(async () => {
    await started?.[Symbol.asyncDispose]()
    await service?.stop()
  })

  /** Returns the link with which Ada leaves. */
  async function linkOf(): Promise<string> {
    const { client } = service
    const captured = async () =>
      (await client.succeed(contract.capturedMessages.list, { query: { emailId, limit: 10 } })).data
    await expect.poll(captured).toHaveLength(1)
    const [{ id = '' } = {}] = await captured()
    const { headers } = await client.succeed(contract.capturedMessages.get, { params: { id } })
    return headers.find(({ name }) => name === 'List-Unsubscribe')?.value.slice(1, -1) ?? ''
  }

  /** Opens the link on a phone. Collects what the page complains of, such as a violation of its CSP. */
  async function open(): Promise<{ page: Page; complaints: string[] }> {
    const page = await browser.newPage({ viewport: phone })
    const complaints: string[] = []
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(error.message))
    await page.goto(await linkOf())
    return { page, complaints }
  }

  async function expectSound(page: Page): Promise<void> {
    expect(await accessibilityFaults(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    expect(await page.title()).not.toBe('owned')
  }

  const topics = async () => {
    const { data } = await service.client.succeed(contract.topics.listOfSubscriber, { params: { id: subscriberId } })
    return data.map(({ name, subscribed }) => [name, subscribed])
  }

  test('a person leaves a topic and changes their name on the preference page', async () => {
    const { page, complaints } = await open()
    await keepScreenshots(page, 'preferences')
    await expectSound(page)
    await page.getByRole('checkbox', { name: 'News' }).uncheck()
    await page.getByLabel('First name').fill('Ada')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('status').getByText('Your preferences are saved.').waitFor()
    await expectSound(page)
    expect(await topics()).toEqual(expect.arrayContaining([['News', false]]))
    const { firstName } = await service.client.succeed(contract.subscribers.get, { params: { id: subscriberId } })
    expect(firstName).toBe('Ada')
    expect(complaints).toEqual([])
    await page.close()
  })

  test('a person unsubscribes with the button behind the link, and not by opening it', async () => {
    const { page, complaints } = await open()
    const status = async () =>
      (await service.client.succeed(contract.subscribers.get, { params: { id: subscriberId } })).status
    expect(await status()).toBe('active')
    await page.getByRole('button', { name: 'Unsubscribe' }).first().click()
    await expect.poll(status).toBe('unsubscribed')
    await expectSound(page)
    expect(complaints).toEqual([])
    await page.close()
  })
})
