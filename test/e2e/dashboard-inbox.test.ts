import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { keptInboundBytes } from '../../contract/inbound-limits.ts'
import { contract } from '../../contract/index.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { accessibilityFaults, openDashboard, shown } from '../support/dashboard.ts'
import { hostileMessage, mildHtml, script } from '../support/hostile-email.ts'
import { type Person, signUp } from '../support/people.ts'
import { comeBack, takesInbound, untilCaptured } from '../support/returned-mail.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { insertInboundMessage } from '../support/stored-messages.ts'

describeInBrowser('emails, events and inbound messages in the dashboard', { timeout: 120_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let person: Person

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService({ mail: takesInbound }), startBrowser()])
    person = await signUp(service)
    await service.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
  })

  const send = (subject: string, to = 'ada@example.org') =>
    service.client.succeed(contract.emails.send, {
      body: { from: 'Shop <hello@shop.test>', to, subject, text: 'Hello' },
    })

  test('new emails come into the list by themselves, and are found by recipient, subject and ID', async () => {
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    await page.goto(`/app/${service.accountId}/live/emails`)
    await page.getByText('No emails in live mode yet').waitFor()
    await send('Welcome, Ada')
    const { id } = await send('Your invoice', 'bob@example.org')
    await page.getByRole('cell', { name: 'Welcome, Ada' }).waitFor()
    await page.getByRole('cell', { name: 'Your invoice' }).waitFor()

    const search = page.getByLabel('Search')
    // Each finds another one than the one before, so that what is shown is what was found last.
    for (const [text, expected] of [
      ['your inv', 'Your invoice'],
      ['ADA@', 'Welcome, Ada'],
      [id, 'Your invoice'],
    ] as const) {
      await search.fill(text)
      await search.press('Enter')
      await page.getByRole('row').nth(2).waitFor({ state: 'detached' })
      await page.getByRole('cell', { name: expected }).waitFor()
    }
    await search.fill('%')
    await search.press('Enter')
    await page.getByText('No email fits these filters').waitFor()
    expect(new URL(page.url()).searchParams.get('search')).toBe('%')
    expect(await accessibilityFaults(page)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  test('events come in live, in their order, also those of a break', async () => {
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    const add = (email: string) => service.client.succeed(contract.subscribers.create, { body: { email } })
    await add('before@example.com')
    await page.goto(`/app/${service.accountId}/live/events?type=subscriber.added`)
    await page.getByRole('cell', { name: 'before@example.com' }).waitFor()
    const placeOf = () => Promise.all(['switch', 'table'].map((role) => page.getByRole(role as 'table').boundingBox()))
    const [switchBefore, tableBefore] = await placeOf()
    // Between the reading of the list and the beginning of the stream.
    await add('between@example.com')
    await page.getByRole('switch', { name: 'Live' }).press('Space')
    await page.getByRole('cell', { name: 'between@example.com' }).waitFor()
    await add('first@example.com')
    await page.getByRole('cell', { name: 'first@example.com' }).waitFor()
    expect(new URL(page.url()).searchParams.get('live')).toBe('on')

    await page.getByRole('switch', { name: 'Live' }).press('Space')
    await add('missed@example.com')
    await page.getByRole('switch', { name: 'Live' }).press('Space')
    await page.getByRole('cell', { name: 'missed@example.com' }).waitFor()
    const cells = await page.getByRole('cell', { name: '@example.com' }).allInnerTexts()
    expect(cells).toEqual(['missed', 'first', 'between', 'before'].map((name) => `${name}@example.com`))
    expect(await page.getByText('in a moment').count()).toBe(0)
    const marked = await page.locator('tr[data-new]').getByRole('cell', { name: '@example.com' }).allInnerTexts()
    expect(marked).toEqual(cells.slice(0, 3))
    const [switchAfter, tableAfter] = await placeOf()
    expect(switchAfter).toEqual(switchBefore)
    expect({ ...tableAfter, height: 0 }).toEqual({ ...tableBefore, height: 0 })
    await shown(page)
    expect(await accessibilityFaults(page)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  test('the history of a person leads to the events about them, and an event is found by its ID', async () => {
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    const main = page.getByRole('main')
    const { client } = service
    const { id } = await client.succeed(contract.subscribers.create, { body: { email: 'history@example.com' } })
    await client.succeed(contract.subscribers.create, { body: { email: 'other@example.com' } })
    await client.succeed(contract.subscribers.unsubscribe, { params: { id }, body: {} })
    const types = () => main.getByRole('table').getByRole('link').allInnerTexts()

    await page.goto(`/app/${service.accountId}/live/subscribers/${id}`)
    await main.getByRole('link', { name: 'What happened to this person' }).click()
    await expect.poll(types).toEqual(['subscriber.added', 'subscriber.unsubscribed'])
    expect(await main.getByRole('switch').isDisabled()).toBe(true)
    await main.getByRole('link', { name: 'subscriber.unsubscribed' }).click()
    await main.getByRole('link', { name: id }).waitFor()
    const eventId = new URL(page.url()).pathname.split('/').at(-1) ?? ''

    await main.getByRole('link', { name: 'Events', exact: true }).click()
    const search = main.getByLabel('Search')
    await search.fill(eventId)
    await search.press('Enter')
    await expect.poll(types).toEqual(['subscriber.unsubscribed'])
    await search.fill('history@example.com')
    await search.press('Enter')
    await main.getByText('must be a whole identifier that begins with "evt_"').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  test('a message that comes back and is not understood appears by itself, with why, and nothing in it runs', async () => {
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    await page.goto(`/app/${service.accountId}/live/inbound-messages`)
    await page.getByRole('heading', { name: 'No inbound messages yet' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    const { id } = await send('Answered by a program')
    const { returnPath } = await untilCaptured(service, id)
    await comeBack(service, returnPath, hostileMessage(mildHtml))
    const row = page.getByRole('row', { name: 'It is neither a delivery status notification nor a feedback report.' })
    await row.getByRole('cell', { name: script }).first().waitFor()
    await row.getByRole('link').click()

    await page.getByRole('heading', { level: 1, name: script }).waitFor()
    const main = page.getByRole('main')
    await main.getByText('It is neither a delivery status notification').waitFor()
    await main.getByText(returnPath).waitFor()
    await page.frameLocator('iframe').getByText('Hello').waitFor()
    await main.getByRole('cell', { name: '<img src=x onerror=alert()>.html' }).waitFor()
    expect(await main.getByRole('button', { name: /^Download/ }).count()).toBe(0)
    await main.getByText('Headers', { exact: true }).click()
    expect(await main.locator('pre.block').innerText()).toContain(`X-Header: ${script}`)
    await main.getByText('Source', { exact: true }).click()
    const [source] = await Promise.all([
      page.waitForEvent('download'),
      main.getByRole('button', { name: 'Download the source' }).click(),
    ])
    expect(source.suggestedFilename()).toMatch(/^inb_\w+\.eml$/)
    expect(await readFile(await source.path(), 'utf8')).toContain(`Subject: ${script}`)
    expect(await page.title()).toBe(`${script} · Ours · Postern`)
    expect(await main.locator('img, script').count()).toBe(0)
    expect(await accessibilityFaults(page)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  test('an email leads to what came back about it and was not understood, and that message to the email', async () => {
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    const [of, other] = await Promise.all([send('With an answer'), send('Without one')])
    const { returnPath } = await untilCaptured(service, of.id)
    await comeBack(service, returnPath, 'From: ada@example.org\r\nSubject: Where is my parcel?\r\n\r\nHello\r\n')
    await page.goto(`/app/${service.accountId}/live/emails/${of.id}`)
    const main = page.getByRole('main')
    await main.getByRole('link', { name: 'What came back and was not understood' }).click()
    await main.getByRole('cell', { name: 'Where is my parcel?' }).waitFor()
    expect(await main.getByRole('row').count()).toBe(2)
    expect(new URL(page.url()).searchParams.get('email')).toBe(of.id)
    await main.getByRole('row').getByRole('link', { name: 'ada@example.org' }).click()
    await main.getByText('Hello', { exact: true }).waitFor()
    await main.getByRole('link', { name: 'Its recipients and timeline' }).click()
    await page.getByRole('heading', { level: 1, name: 'With an answer' }).waitFor()

    await page.goto(`/app/${service.accountId}/live/inbound-messages?email=${other.id}`)
    await page.getByRole('heading', { name: 'No inbound messages of this email' }).waitFor()
    await page.getByRole('button', { name: 'Clear the filters' }).click()
    await main.getByRole('cell', { name: 'Where is my parcel?' }).waitFor()
    expect(complaints).toEqual([])
    await context.close()
  })

  test.each([
    ['empty', 'From:\r\nSubject:'],
    ['an empty address and a blank', 'From: <>\r\nSubject: =?utf-8?Q?_=E2=80=8B_?='],
  ])('an inbound message whose sender and subject are %s has words for them', async (_, headers) => {
    const id = await insertInboundMessage(service.database, {
      accountId: service.accountId,
      content: `${headers}\r\n\r\nHello\r\n`,
    })
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    const main = page.getByRole('main')
    await page.goto(`/app/${service.accountId}/live/inbound-messages`)
    const link = page.locator(`a[href$="${id}"]`)
    await link.waitFor()
    expect(await link.innerText()).toBe('(no sender)')
    await main.getByRole('row').filter({ has: link }).getByTitle('(no subject)').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await link.click()
    await page.getByRole('heading', { level: 1, name: '(no subject)' }).waitFor()
    await main.getByText('(no sender)').waitFor()
    expect(complaints).toEqual([])
    await context.close()
  })

  test('an inbound message that is longer than what is kept says that its end is gone', async () => {
    const { id } = await send('With a long answer')
    const { returnPath } = await untilCaptured(service, id)
    const lines = 'All work and no play\r\n'.repeat(keptInboundBytes / 20)
    await comeBack(service, returnPath, `Subject: Long\r\n\r\n${lines}`)
    await comeBack(service, returnPath, 'Subject: Short\r\n\r\nHello\r\n')
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    const main = page.getByRole('main')
    const list = `/app/${service.accountId}/live/inbound-messages?email=${id}`
    await page.goto(list)
    await main.getByRole('row', { name: 'Long' }).getByRole('link').click()
    await main.getByText('1.0 MB. Only the first MiB was kept.').waitFor()
    await page.goto(list)
    await main.getByRole('row', { name: 'Short' }).getByRole('link').click()
    await main.getByText('Hello', { exact: true }).waitFor()
    expect(await main.getByText('was kept').count()).toBe(0)
    expect(complaints).toEqual([])
    await context.close()
  })

  test('a list whose next page or latest rows cannot be read says so below its rows, until they are read', async () => {
    const { accountId, database } = service
    const oldest = await insertInboundMessage(database, { accountId })
    for (let count = 0; count < 50; count += 1) await insertInboundMessage(database, { accountId })
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    const main = page.getByRole('main')
    const alert = main.getByRole('alert')
    const refusal = { error: { code: 'rate_limited', message: 'Not now.', requestId: null } }
    /** Has the lists at these addresses refused. */
    const refuse = (urls: RegExp) =>
      page.route(urls, (route) => route.fulfill({ status: 422, contentType: 'application/json', json: refusal }))
    const nextPage = /\/v1\/inbound-messages\?.*cursor=/
    const anyPage = /\/v1\/inbound-messages\?/

    await page.goto(`/app/${accountId}/live/inbound-messages`)
    await expect.poll(() => main.getByRole('row').count()).toBe(51)
    await refuse(anyPage)
    await alert.getByText('Not now.').waitFor()
    expect(await main.getByRole('row').count()).toBe(51)
    await page.unroute(anyPage)
    await alert.waitFor({ state: 'detached' })

    await refuse(nextPage)
    await main.getByRole('button', { name: 'Show more' }).click()
    await alert.getByText('Not now.').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.unroute(nextPage)
    await alert.getByRole('button', { name: 'Try again' }).click()
    await main.locator(`a[href$="${oldest}"]`).waitFor()
    await alert.waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
    await context.close()
  })

  test('inbound messages are in live mode only, which their screen leads to, with the filter of the link', async () => {
    const { accountId, database } = service
    const { id: emailId } = await send('Of the link')
    await insertInboundMessage(database, { accountId, emailId, content: 'Subject: Of this email\r\n\r\nHello\r\n' })
    await insertInboundMessage(database, { accountId, content: 'Subject: Of none\r\n\r\nHello\r\n' })
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    await page.goto(`/app/${service.accountId}/test/inbound-messages?email=${emailId}`)
    await page.getByRole('button', { name: 'Switch to live mode' }).click()
    await page.getByRole('cell', { name: 'Of this email' }).waitFor()
    expect(await page.getByRole('cell', { name: 'Of none' }).count()).toBe(0)
    expect(new URL(page.url()).pathname).toBe(`/app/${service.accountId}/live/inbound-messages`)
    expect(complaints).toEqual([])
    await context.close()
  })
})
