import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import {
  accessibilityFaults,
  type DashboardOptions,
  openDashboard,
  phone,
  screenFaults,
  shown,
} from '../support/dashboard.ts'
import { tomorrow } from '../support/fixtures.ts'
import { type Person, signUp } from '../support/people.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** One red pixel. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const svg = Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" onload="document.title='owned'"/>`).toString('base64')
const page1 = Buffer.from(`<script>document.title='owned'</script>`)

const attachments = [
  { filename: 'logo.png', contentType: 'image/png', contentId: 'logo', content: pixel },
  { filename: 'mark.svg', contentType: 'image/svg+xml', contentId: 'mark', content: svg },
  { filename: `<img src=x onerror="document.title='owned'">.html`, content: page1.toString('base64') },
]
const html = `<h1>Hello</h1><img id="logo" src="cid:logo"><img id="mark" src="cid:mark"><img id="other" src="logo">
  <a href="https://evil.example/path?a=1">https://bank.example</a> <a href="https://evil.example/path?a=1">again</a>
  <a href="javascript:document.title='owned'">script</a> <a href="data:text/html,owned">data</a>
  <a href="mailto:help@shop.test">Help</a>`

describeInBrowser('one email in the dashboard', { timeout: 120_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let person: Person
  let id: string

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService({ maxEmailBodyBytes: 2_000_000 }), startBrowser()])
    person = await signUp(service)
    await service.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    id = await send({ html, attachments })
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
  })

  async function send(content: object): Promise<string> {
    const json = { from: 'hello@shop.test', to: 'delivered@simulator.test', subject: 'Hello', ...content }
    const { status, body, text } = await service.client.send('POST', '/v1/emails', { json })
    expect(status, text).toBe(202)
    return String(Object(body).id)
  }

  async function open(email: string, options: DashboardOptions = {}) {
    const opened = await openDashboard(chromium.browser, service, { person, ...options })
    await opened.page.goto(`/app/${service.accountId}/live/emails/${email}`)
    await shown(opened.page)
    return opened
  }

  test('one email in the dashboard shows its inline images, and no image that could run something', async () => {
    const { page, context, complaints } = await open(id)
    const frame = page.frameLocator('iframe')
    await frame.locator('#logo[src^="data:image/png"]').waitFor()
    await expect
      .poll(() => frame.locator('#logo').evaluate((image: { naturalWidth: number }) => image.naturalWidth))
      .toBe(1)
    expect(await frame.locator('#mark').getAttribute('src')).toBeNull()
    expect(await frame.locator('#other').getAttribute('src')).toBeNull()
    expect(complaints).toEqual([])
    await context.close()
  })

  test('an email that names one large image thousands of times does not hold the browser up', async () => {
    const image = {
      filename: 'a.png',
      contentType: 'image/png',
      contentId: 'a',
      content: Buffer.alloc(900_000).toString('base64'),
    }
    const hostile = await send({ html: `<h1>Hello</h1>${'<img src="cid:a">'.repeat(10_000)}`, attachments: [image] })
    const { page, context } = await open(hostile)
    const frame = page.frameLocator('iframe')
    await frame.locator('img[src]').first().waitFor({ state: 'attached' })
    expect(await frame.locator('img[src]').count()).toBe(8)
    await context.close()
  })

  test('one email in the dashboard has files to download as they were sent, and none that opens', async () => {
    const { page, context, complaints } = await open(id)
    const files = page.getByRole('table', { name: 'Files' })
    expect(await files.getByRole('row').count()).toBe(4)
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      files.getByRole('button', { name: /onerror/ }).click(),
    ])
    expect(await readFile(await download.path())).toEqual(page1)
    expect(await page.title()).toMatch(/ · Ours · Postern$/)
    expect(await accessibilityFaults(page)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  test('one email in the dashboard lists where its links lead, whatever their texts say', async () => {
    const { page, context, complaints } = await open(id, { viewport: phone })
    await page.getByLabel('View', { exact: true }).getByText('Links').click()
    const links = page.getByRole('main').getByRole('list').last().getByRole('link')
    expect(await links.allInnerTexts()).toEqual(['https://evil.example/path?a=1', 'mailto:help@shop.test'])
    expect(await links.first().getAttribute('rel')).toBe('noopener noreferrer nofollow')
    expect(await accessibilityFaults(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    expect(complaints).toEqual([])
    await context.close()
  })

  test('one email in the dashboard is sent again, and the screen shows the new one', async () => {
    const { page, context, complaints } = await open(id)
    await page.getByRole('button', { name: 'Send again' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click()
    await page.getByText('This is the new one').waitFor()
    await page.waitForURL(({ pathname }) => !pathname.endsWith(id))
    const again = new URL(page.url()).pathname.split('/').at(-1) ?? ''
    await page.getByRole('button', { name: `Copy the ID: ${again}` }).waitFor()
    const { attachments: files } = await service.client.succeed(contract.emails.get, { params: { id: again } })
    expect(files.map(({ filename }) => filename)).toEqual(attachments.map(({ filename }) => filename))
    expect(complaints).toEqual([])
    await context.close()
  })

  test('a scheduled email gets another time of the zone of the reader, and a time that has passed is refused at its field', async () => {
    const scheduledAt = tomorrow()
    const scheduled = await send({ html, scheduledAt })
    const { page, context, complaints } = await open(scheduled, { viewport: phone, timezoneId: 'Asia/Tokyo' })
    const [main, dialog] = [page.getByRole('main'), page.getByRole('dialog')]
    const shownTime = (at: string) => main.locator(`dl time[datetime="${at}"]`)
    await shownTime(scheduledAt).first().waitFor()
    await keepScreenshots(page, 'scheduled-email')
    expect(await screenFaults(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    await main.getByRole('button', { name: 'Change the time' }).click()
    await dialog.getByText(/^In your time zone, Asia\/Tokyo: .* GMT\+9\.$/).waitFor()
    const time = dialog.getByLabel('Time')
    const inTokyo = new Date(Date.parse(scheduledAt) + 9 * 3_600_000).toISOString()
    expect(await time.inputValue()).toBe(inTokyo.slice(0, 16))

    // With its seconds, which the input does not show.
    await dialog.getByRole('button', { name: 'Change the time' }).click()
    await dialog.waitFor({ state: 'detached' })
    const unchanged = await service.client.succeed(contract.emails.get, { params: { id: scheduled } })
    expect(unchanged).toMatchObject({ scheduledAt })

    await main.getByRole('button', { name: 'Change the time' }).click()
    await time.fill('2026-01-01T09:30')
    await dialog.getByRole('button', { name: 'Change the time' }).click()
    await dialog.getByText('Must be in the future').waitFor()
    expect(await time.getAttribute('aria-invalid')).toBe('true')
    await keepScreenshots(page, 'scheduled-email-fault')
    expect(await accessibilityFaults(page)).toEqual([])

    const day = new Date(Date.now() + 3 * 86_400_000).toISOString().slice(0, 10)
    await time.fill(`${day}T09:30`)
    await dialog.getByRole('button', { name: 'Change the time' }).click()
    await shownTime(`${day}T00:30:00.000Z`).first().waitFor()
    const stored = await service.client.succeed(contract.emails.get, { params: { id: scheduled } })
    expect(stored).toMatchObject({ status: 'scheduled', scheduledAt: `${day}T00:30:00.000Z` })

    await main.getByText('Scheduled for', { exact: true }).waitFor()
    await main.getByRole('button', { name: 'Cancel the email' }).click()
    await dialog.getByRole('button', { name: 'Cancel the email' }).click()
    await main.getByText('Canceled', { exact: true }).first().waitFor()
    expect(await main.getByRole('button', { name: 'Change the time' }).count()).toBe(0)
    expect(complaints).toEqual([])
    await context.close()
  })

  test('a dialog about a scheduled email stays when the email does not wait any more, and shows what the API says', async () => {
    const { client } = service
    const scheduled = await send({ html, scheduledAt: tomorrow() })
    const { page, context, complaints } = await open(scheduled, { timezoneId: 'America/New_York' })
    const [main, dialog] = [page.getByRole('main'), page.getByRole('dialog')]
    await main.getByRole('button', { name: 'Change the time' }).click()
    const time = dialog.getByLabel('Time')
    await time.fill('2027-03-14T02:30')
    await dialog.getByRole('button', { name: 'Change the time' }).click()
    await dialog.getByText('Clocks skip this time on that day.').waitFor()

    await client.succeed(contract.emails.cancel, { params: { id: scheduled }, body: {} })
    await page.getByText('Canceled', { exact: true }).first().waitFor()
    await time.fill(`${new Date(Date.now() + 3 * 86_400_000).toISOString().slice(0, 10)}T09:30`)
    await dialog.getByRole('button', { name: 'Change the time' }).click()
    await dialog.getByRole('alert').getByText('is not scheduled but canceled').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await main.getByRole('button', { name: 'Change the time' }).count()).toBe(0)
    expect(complaints).toEqual([])
    await context.close()
  })
})
