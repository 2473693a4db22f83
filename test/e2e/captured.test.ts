import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { arch, platform } from 'node:os'
import { createTransport } from 'nodemailer'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startBrowser, type TestBrowser } from '../support/browser.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { insertCapturedMessage } from '../support/stored-messages.ts'

/** The browser that the tests bring along is built for this machine alone. */
const runsHere = platform() === 'linux' && arch() === 'x64'
const title = runsHere
  ? 'the page of captured messages in a browser'
  : `the page of captured messages in a browser (skipped: the browser of the tests runs on Linux x64 only, this is ${platform()} ${arch()})`

/** What a message must not do in the browser of whoever looks at it, with all that leads to `tracker`. */
const hostile = (tracker: string) => `<body style="color: rgb(1, 2, 3)"><h1 id="hello">Hello Ada</h1>
  <script>top.document.title = 'owned'; parent.postMessage('ran', '*')</script>
  <img src="x" onerror="top.document.title = 'owned'">
  <img src="${tracker}/pixel.gif">
  <link rel="stylesheet" href="${tracker}/style.css">
  <style>@import '${tracker}/import.css'; p { background: url(${tracker}/background.png) }</style>
  <meta http-equiv="refresh" content="0; url=${tracker}/refresh">
  <iframe src="${tracker}/frame"></iframe>
  <form action="${tracker}/form"><button id="send">Send</button></form>
  <p><a id="away" href="${tracker}/link" target="_top">Away</a></p></body>`

describe.runIf(runsHere)(title, { timeout: 90_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let page: Page
  const tracked: string[] = []
  const tracker = createServer((request, response) => {
    tracked.push(String(request.url))
    response.end()
  })
  const complaints: string[] = []

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService({ roles: { worker: false } }), startBrowser()])
    await once(tracker.listen(0, '127.0.0.1'), 'listening')
    const trackerUrl = `http://127.0.0.1:${(tracker.address() as AddressInfo).port}`
    const { message } = await createTransport({ streamTransport: true, buffer: true }).sendMail({
      from: 'Shop <shop@example.com>',
      to: 'ada@example.org',
      subject: '<b>Grüße</b>',
      text: 'Hello <i>Ada</i>',
      html: hostile(trackerUrl),
      attachments: [{ filename: 'terms.pdf', content: 'terms' }],
    })
    await insertCapturedMessage(service.database, { accountId: service.accountId, content: message as Buffer })
    page = await chromium.browser.newPage()
    page.setDefaultTimeout(30_000)
    page.on('pageerror', (error) => complaints.push(String(error)))
    await page.goto(`${service.url}/captured`)
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
    tracker.close()
  })

  async function showMessages(key: string): Promise<void> {
    await page.getByLabel('API key').fill(key)
    await page.getByRole('button', { name: 'Show messages' }).click()
  }

  test('says that nothing leaves this machine', async () => {
    expect(await page.locator('header').innerText()).toContain('Nothing leaves this machine')
  })

  test('says so when the key is no good', async () => {
    await showMessages('postern_live_wrong')
    await page.getByRole('status').filter({ hasText: 'key' }).waitFor()
    expect(await page.locator('#list').isVisible()).toBe(false)
  })

  test('lists messages, with what stands in them as text', async () => {
    await showMessages(service.keys.live)
    await page.getByRole('button', { name: '<b>Grüße</b>' }).waitFor()
    expect(await page.locator('#rows').innerText()).toContain('ada@example.org')
  })

  test('keeps the key for this tab alone', async () => {
    const kept = await page.evaluate(
      '[document.cookie, localStorage.length, Object.values(sessionStorage).length, document.documentElement.outerHTML]',
    )
    expect(kept).toEqual(['', 0, 1, expect.not.stringContaining(service.keys.live)])
  })

  test('shows the HTML of a message, which runs nothing, loads nothing and leads nowhere', async () => {
    await page.getByRole('button', { name: '<b>Grüße</b>' }).click()
    const shown = page.frameLocator('#html')
    await shown.locator('#hello').waitFor()
    const colour = await shown.locator('#hello').evaluate("getComputedStyle(document.querySelector('#hello')).color")
    expect(colour).toBe('rgb(1, 2, 3)')
    await shown.locator('#send').click()
    await shown.locator('#away').click()
    await page.getByRole('button', { name: 'Text' }).click()
    expect(await page.locator('#text').innerText()).toContain('Hello <i>Ada</i>')
    expect(await page.title()).toBe('Captured messages')
    expect(page.url()).toBe(`${service.url}/captured`)
    expect(tracked).toEqual([])
  })

  test('shows its files and its source', async () => {
    expect(await page.locator('#facts').innerText()).toContain('terms.pdf (5 bytes)')
    await page.getByRole('button', { name: 'Source' }).click()
    expect(await page.locator('#source').innerText()).toContain('MIME-Version: 1.0')
  })

  test('shows the list again when it is loaded again, until the key is forgotten', async () => {
    await page.reload()
    await page.getByRole('button', { name: '<b>Grüße</b>' }).waitFor()
    await page.getByRole('button', { name: 'Forget the key' }).click()
    await page.locator('#list').waitFor({ state: 'hidden' })
    expect(await page.evaluate('sessionStorage.length')).toBe(0)
    expect(complaints).toEqual([])
  })

  test('says why there is nothing where email is really sent', async () => {
    await using relaying = await startTestService({ roles: { worker: false }, mail: { transport: 'relay' } })
    await page.goto(`${relaying.url}/captured`)
    expect(await page.locator('header').innerText()).toContain('nothing is captured')
  })
})
