import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { linkUrl, makeLink } from '../../server/users/links.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { openDashboard } from '../support/dashboard.ts'
import { watchShifts } from '../support/layout-shifts.ts'
import { goodPassword } from '../support/people.ts'
import { answer, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Most presses of Tab from one place to another: a screen has its navigation, and what it is for. */
const mostTabs = 80

/** The name of what has the focus, as a screen reader says it: of a field its label, of the rest its text. */
const focusedName = `(() => {
  const { activeElement: element } = document
  return (element.ariaLabel ?? element.labels?.[0]?.textContent ?? element.textContent).trim()
})()`

describeInBrowser('the dashboard by the keyboard alone', { timeout: 90_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService(), startBrowser()])
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
  })

  async function tabTo(page: Page, name: string): Promise<void> {
    const passed: unknown[] = []
    while (passed.length < mostTabs) {
      await page.keyboard.press('Tab')
      const focused = await page.evaluate(focusedName)
      if (focused === name) return
      passed.push(focused)
    }
    throw new Error(`Tab leads to no "${name}", but to: ${passed.join(', ')}`)
  }

  test('the dashboard by the keyboard alone leads from the first link to the first key and the first webhook, and what is shown keeps its place', async () => {
    await using receiver = await startReceiver()
    receiver.respond(answer(200))
    const { accountId, database } = service
    const { token } = await inTransaction(database.db, (trx) =>
      makeLink(trx, { kind: 'first_user', accountId, role: 'owner', at: systemClock.now() }),
    )
    const { page, context, complaints } = await openDashboard(chromium.browser, service)
    const shiftsOf = await watchShifts(page)
    const { keyboard } = page
    const heading = (name: string) => page.getByRole('heading', { name, level: 1 }).waitFor()
    const dialog = page.getByRole('dialog')

    await page.goto(linkUrl(service.url, token))
    await heading('Welcome to Postern')
    await keyboard.type('Ada Lovelace')
    await tabTo(page, 'Email')
    await keyboard.type('ada@example.com')
    await tabTo(page, 'Password')
    await keyboard.type(goodPassword)
    await keyboard.press('Enter')
    await page.getByRole('heading', { name: 'First steps' }).waitFor()

    await tabTo(page, 'Create an API key')
    await keyboard.press('Enter')
    await heading('API keys')
    await tabTo(page, 'Create API key')
    await keyboard.press('Enter')
    await dialog.waitFor()
    await expect.poll(() => page.evaluate(focusedName)).toBe('Name')
    await keyboard.type('Shop')
    await tabTo(page, 'Full access')
    await keyboard.press('ArrowDown')
    expect(await page.evaluate(focusedName)).toBe('Sending')
    await tabTo(page, 'Create API key')
    await keyboard.press('Enter')
    await dialog.getByText('Copy the key now').waitFor()
    await tabTo(page, 'I have copied it')
    await keyboard.press('Enter')
    await page.getByRole('cell', { name: 'Shop postern_live_' }).waitFor()

    await tabTo(page, 'Webhooks')
    await keyboard.press('Enter')
    await heading('Webhooks')
    await tabTo(page, 'Add webhook')
    await keyboard.press('Enter')
    await expect.poll(() => page.evaluate(focusedName)).toBe('URL')
    await keyboard.type(receiver.url)
    await tabTo(page, 'email.bounced')
    await keyboard.press('Space')
    await tabTo(page, 'Add webhook')
    await keyboard.press('Enter')
    await dialog.getByRole('button', { name: /^Copy the secret/ }).waitFor()
    await tabTo(page, 'I have copied it')
    await keyboard.press('Enter')

    await heading(receiver.url)
    await tabTo(page, 'Send a test')
    await keyboard.press('Enter')
    await dialog.waitFor()
    await tabTo(page, 'Send it')
    await keyboard.press('Enter')
    await dialog.getByText('The endpoint accepted it').waitFor()
    await keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await expect.poll(() => page.evaluate(focusedName)).toBe('Send a test')

    // Web Vitals takes 0.1 of one window of five seconds for good: here it is all of the way.
    const { moved, shifts } = await shiftsOf()
    expect(moved, shifts).toBeLessThanOrEqual(0.1)
    expect(complaints).toEqual([])
    await context.close()
  })
})
