import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createTransport } from 'nodemailer'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { accessibilityFaults, desktop, openDashboard, phone, shown } from '../support/dashboard.ts'
import { type Person, signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { insertCapturedMessage } from '../support/stored-messages.ts'

/** One red pixel. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='

describeInBrowser('captured messages in the dashboard', { timeout: 120_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let person: Person
  let target: string
  /** The requests to the site from clicks on links: path and referrer. */
  const visits: { path: string | undefined; referer: string | undefined }[] = []
  const site = createServer((request, response) => {
    visits.push({ path: request.url, referer: request.headers.referer })
    response.setHeader('Content-Type', 'text/html').end('<h1>The site</h1>')
  })

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService(), startBrowser()])
    person = await signUp(service)
    await service.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    await once(site.listen(0, '127.0.0.1'), 'listening')
    target = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
    site.close()
  })

  const send = (subject: string, content: object = { text: 'Hello' }) =>
    service.client.succeed(contract.emails.send, {
      body: { from: 'Shop <hello@shop.test>', to: 'ada@example.org', subject, ...content } as never,
    })

  const open = (options: { viewport?: typeof phone } = {}) =>
    openDashboard(chromium.browser, service, { person, ...options })

  test('captured messages in the dashboard are what /captured leads to, after signing in, and come in by themselves', async () => {
    const { page, context, complaints } = await openDashboard(chromium.browser, service)
    await page.goto('/captured')
    await page.getByLabel('Email').fill(person.email)
    await page.getByRole('textbox', { name: 'Password' }).fill(person.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Nothing is captured yet' }).waitFor()
    expect(new URL(page.url()).pathname).toBe(`/app/${service.accountId}/live/captured`)
    await send('Welcome')
    await page.getByRole('cell', { name: 'Welcome' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  test('captured messages in the dashboard are found by any part of subject and address', async () => {
    const { page, context } = await open()
    await send('Your invoice 4711')
    await page.goto(`/app/${service.accountId}/live/captured`)
    await page.getByRole('cell', { name: 'Your invoice 4711' }).waitFor()
    await page.getByLabel('Search').fill('voice 47')
    await page.getByLabel('Search').press('Enter')
    await page.getByRole('row').nth(2).waitFor({ state: 'detached' })
    expect(await page.getByRole('cell', { name: 'Your invoice 4711' }).count()).toBe(1)
    expect(new URL(page.url()).searchParams.get('search')).toBe('voice 47')
    await page.getByLabel('Search').fill('nothing like it')
    await page.getByLabel('Search').press('Enter')
    await page.getByRole('heading', { name: 'No captured message fits these filters' }).waitFor()
    await context.close()
  })

  test.each([
    ['on a desktop', desktop],
    ['on a phone', phone],
  ])(
    'captured messages in the dashboard show inline images, links that open in a new window, files and the source, %s',
    async (_, viewport) => {
      const html = `<h1>Hello</h1><img id="logo" src="cid:logo"><p><a href="${target}/shop" target="_top">To the shop</a></p>
      <a href="javascript:top.document.title='owned'">Script</a>`
      const attachments = [
        { filename: 'logo.png', contentType: 'image/png', contentId: 'logo', content: pixel },
        { filename: 'terms.txt', contentType: 'text/plain', content: Buffer.from('The terms').toString('base64') },
      ]
      const { id } = await send('With a picture', { html, text: `See ${target}/text.`, attachments })
      const { page, context, complaints } = await open({ viewport })
      await page.goto(`/app/${service.accountId}/live/emails/${id}`)
      await page.getByRole('link', { name: 'What would have been sent' }).click()
      await page.getByRole('row', { name: 'With a picture' }).getByRole('link').click()
      await page.getByRole('heading', { name: 'With a picture', level: 1 }).waitFor()
      const frame = page.frameLocator('iframe')
      await frame.locator('#logo[src^="data:image/png"]').waitFor()
      expect(await frame.getByText('Script').getAttribute('href')).toBeNull()

      visits.length = 0
      const [shop] = await Promise.all([
        context.waitForEvent('page'),
        frame.getByRole('link', { name: 'To the shop' }).click(),
      ])
      await shop.getByRole('heading', { name: 'The site' }).waitFor()
      expect(await shop.evaluate('[window.opener, document.referrer]')).toEqual([null, ''])
      await shop.close()
      await page.getByText('Text', { exact: true }).click()
      const [text] = await Promise.all([
        context.waitForEvent('page'),
        page.getByRole('link', { name: `${target}/text` }).click(),
      ])
      await text.getByRole('heading', { name: 'The site' }).waitFor()
      await text.close()
      const pages = visits.filter(({ path }) => path !== '/favicon.ico')
      expect(pages).toEqual([
        { path: '/shop', referer: undefined },
        { path: '/text', referer: undefined },
      ])

      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download terms.txt' }).click(),
      ])
      expect(await readFile(await download.path(), 'utf8')).toBe('The terms')
      await page.getByText('Source', { exact: true }).click()
      expect(await page.locator('pre.block').innerText()).toContain('DKIM-Signature: ')
      const [source] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download the source' }).click(),
      ])
      expect(source.suggestedFilename()).toMatch(/^cap_\w+\.eml$/)
      expect(await readFile(await source.path(), 'utf8')).toContain('Subject: With a picture')
      await page.getByText('Headers', { exact: true }).click()
      expect(await page.locator('pre.block').innerText()).toContain('From: Shop <hello@shop.test>')
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
      expect(complaints.filter((complaint) => !complaint.includes(target))).toEqual([])
      await context.close()
    },
  )

  test('captured messages of other programs are shown too, with a file that has no name', async () => {
    const { message } = await createTransport({ streamTransport: true, buffer: true }).sendMail({
      from: 'cron@example.com',
      to: 'root@example.com',
      subject: 'Nightly',
      text: 'Done',
      attachments: [{ filename: false, content: 'log', contentType: 'application/x-log' }],
    })
    const content = message as Buffer
    const id = await insertCapturedMessage(service.database, { accountId: service.accountId, content })
    const { page, context, complaints } = await open()
    await page.goto(`/app/${service.accountId}/live/captured/${id}`)
    await page.getByText('None: another program sent it').waitFor()
    await page.getByRole('button', { name: 'Download attachment-1' }).waitFor()
    expect(complaints).toEqual([])
    await context.close()
  })

  test('captured messages in the dashboard are deleted one by one and all at once; the emails stay', async () => {
    const { id: emailId } = await send('Deleted alone')
    const { page, context, complaints } = await open()
    await page.goto(`/app/${service.accountId}/live/captured?email=${emailId}`)
    await page.getByRole('row', { name: 'Deleted alone' }).getByRole('link').click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete the message' }).click()
    await page.getByRole('heading', { name: 'Captured', level: 1 }).waitFor()
    await shown(page)
    // The list that was read before may be shown for a moment.
    await page.getByRole('cell', { name: 'Deleted alone' }).waitFor({ state: 'detached' })
    await page.getByRole('cell', { name: 'Welcome' }).waitFor()

    await page.getByRole('button', { name: 'Delete all' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete all' }).click()
    await page.getByRole('heading', { name: 'Nothing is captured yet' }).waitFor()
    expect((await service.client.succeed(contract.capturedMessages.list, { query: {} })).data).toEqual([])
    await service.client.succeed(contract.emails.get, { params: { id: emailId } })
    expect(complaints).toEqual([])
    await context.close()
  })

  test('captured messages in the dashboard are left out of the navigation where email is really sent, and their screen says why there are none', async () => {
    await using relaying = await startTestService({ roles: { worker: false }, mail: { transport: 'relay' } })
    const member = await signUp(relaying)
    const { page, context } = await openDashboard(chromium.browser, relaying, { person: member })
    await page.goto('/captured')
    await page.getByRole('heading', { name: 'Nothing is captured here' }).waitFor()
    expect(await page.getByRole('navigation').getByRole('link', { name: 'Captured' }).count()).toBe(0)
    expect(await page.getByRole('navigation').getByRole('link', { name: 'Emails' }).count()).toBe(1)
    await context.close()
  })
})
