import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readMailbox } from '../../server/message/mailbox.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { accessibilityFaults, openDashboard, phone, shown } from '../support/dashboard.ts'
import { type Person, signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

describeInBrowser('a forgotten password, in a browser', { timeout: 90_000 }, () => {
  const { mailbox: accountEmailFrom } = readMailbox('Postern <account@shop.example>')
  const newPassword = 'a password that is new'
  let service: TestService
  let chromium: TestBrowser
  let person: Person

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService({ mail: { accountEmailFrom } }), startBrowser()])
    person = await signUp(service, { email: 'ada@example.com' })
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
  })

  /** Returns what the page says to a person who asks for a link to this address. */
  async function askFor(page: Page, email: string): Promise<string> {
    await page.goto('/app/sign-in')
    await page.getByRole('link', { name: 'Forgot your password?' }).click()
    await page.getByRole('heading', { name: 'Forgot your password?' }).waitFor()
    await page.getByLabel('Email').fill(email)
    await page.getByRole('button', { name: 'Send the link' }).click()
    await page.getByRole('heading', { name: 'Look at your email' }).waitFor()
    return page.getByRole('main').innerText()
  }

  /** Returns the address of the link in the captured email, as another member sees it in the dashboard. */
  async function linkInCapturedEmail(): Promise<string> {
    const { page, context } = await openDashboard(chromium.browser, service, { person: await signUp(service) })
    await page.goto('/captured')
    await page.getByRole('row', { name: 'Set a new password for Postern' }).getByRole('link').click()
    const link = await page.frameLocator('iframe').getByRole('link').getAttribute('href')
    await context.close()
    return link ?? ''
  }

  test('a forgotten password is replaced with the link of a captured email, which ends the sessions and works once', async () => {
    const before = await openDashboard(chromium.browser, service, { person })
    await before.page.goto(`/app/${service.accountId}/live/domains`)
    await shown(before.page)

    const { page, context, complaints } = await openDashboard(chromium.browser, service)
    await askFor(page, person.email)
    const link = await linkInCapturedEmail()
    expect(link).toMatch(new RegExp(`^${service.url}/app/accept#token=[\\w-]{43}$`))

    await page.goto(link)
    await page.getByRole('heading', { name: 'Choose a new password' }).waitFor()
    expect(page.url()).toBe(`${service.url}/app/accept`)
    expect(await page.getByLabel('Email').inputValue()).toBe(person.email)
    await page.getByRole('textbox', { name: 'Password' }).fill(newPassword)
    await page.getByRole('button', { name: 'Set the password' }).click()
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    expect(complaints).toEqual([])
    await context.close()

    await before.page.reload()
    const signIn = async (password: string) => {
      await before.page.getByLabel('Email').fill(person.email)
      await before.page.getByRole('textbox', { name: 'Password' }).fill(password)
      await before.page.getByRole('button', { name: 'Sign in' }).click()
    }
    await signIn(person.password)
    await before.page.getByRole('alert').filter({ hasText: 'password is not right' }).waitFor()
    await signIn(newPassword)
    await before.page.getByRole('heading', { name: 'Domains', level: 1 }).waitFor()

    await before.page.goto(link)
    await before.page.getByRole('heading', { name: 'This link does not work any more' }).waitFor()
    await before.page.getByRole('link', { name: 'Send me a link to set a new password' }).click()
    await before.page.getByRole('heading', { name: 'Forgot your password?' }).waitFor()
    await before.context.close()
  })

  test('a forgotten password gets the same words for an address with a user and without one', async () => {
    const { page, context } = await openDashboard(chromium.browser, service)
    const known = await askFor(page, person.email)
    const unknown = await askFor(page, 'grace@example.com')
    expect(unknown.replaceAll('grace@example.com', person.email)).toBe(known)
    await context.close()
  })

  test.each([
    { colorScheme: 'light', viewport: phone },
    { colorScheme: 'dark', viewport: phone },
  ] as const)(
    'a new password is asked for by keyboard, on a phone, in $colorScheme: axe finds nothing',
    async (look) => {
      const { page, context, complaints } = await openDashboard(chromium.browser, service, look)
      await page.goto('/app/forgot-password')
      await page.getByLabel('Email').waitFor()
      const faults = await accessibilityFaults(page)
      await page.keyboard.type('grace@example.com')
      await page.keyboard.press('Enter')
      await page.getByRole('status').filter({ hasText: 'grace@example.com' }).waitFor()
      faults.push(...(await accessibilityFaults(page)))
      expect(faults).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(look.viewport.width)
      expect(complaints).toEqual([])
      await context.close()
    },
  )

  test('the page for a forgotten password says that the operator makes the link where the service sends no email', async () => {
    await using without = await startTestService({ beside: service, roles: { worker: false } })
    const { page, context } = await openDashboard(chromium.browser, without)
    await page.goto('/app/forgot-password')
    await page.getByLabel('Email').fill(person.email)
    await page.getByRole('button', { name: 'Send the link' }).click()
    await page.getByRole('alert').filter({ hasText: 'users reset-password' }).waitFor()
    await context.close()
  })
})
