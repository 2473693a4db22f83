import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { accessibilityFaults, openDashboard, shown } from '../support/dashboard.ts'
import { type Person, signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

describeInBrowser('emails and events in the dashboard', { timeout: 120_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let person: Person

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService(), startBrowser()])
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
})
