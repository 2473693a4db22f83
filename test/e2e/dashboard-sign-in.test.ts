import type { CDPSession } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { accessibilityFaults, type DashboardPage, openDashboard, phone } from '../support/dashboard.ts'
import { type IdentityProvider, startIdentityProvider } from '../support/identity-provider.ts'
import { passkeyOrigin } from '../support/passkeys.ts'
import { goodPassword, type Person, pageHeaders, signUp } from '../support/people.ts'
import { startTestService, type TestService } from '../support/service.ts'

describeInBrowser('other ways to sign in, in a browser', { timeout: 90_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let provider: IdentityProvider
  let person: Person
  let opened: DashboardPage
  let devices: CDPSession
  let security: string
  /** Where passkeys work. The service listens on 127.0.0.1, which is no name. */
  let origin: string

  beforeAll(async () => {
    provider = await startIdentityProvider({ redirectUri: () => `${service.url}/app/provider` })
    ;[service, chromium] = await Promise.all([
      startTestService({ roles: { worker: false }, identityProvider: provider.settings }),
      startBrowser(),
    ])
    person = await signUp(service)
    origin = passkeyOrigin(service)
    security = `${origin}/app/${service.accountId}/live/settings/security`
    opened = await openDashboard(chromium.browser, { url: origin }, { person })
    devices = await opened.context.newCDPSession(opened.page)
    await devices.send('WebAuthn.enable')
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
    await provider?.[Symbol.asyncDispose]()
  })

  /** Plugs an authenticator in. It confirms everything by itself. */
  async function plugIn(): Promise<void> {
    const options = {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
    } as const
    await devices.send('WebAuthn.addVirtualAuthenticator', {
      options: { ...options, isUserVerified: true, automaticPresenceSimulation: true },
    })
  }

  test('the page at an address without a name says where passkeys work', async () => {
    const { page, context } = await openDashboard(chromium.browser, service, { person })
    await page.goto(`/app/${service.accountId}/live/settings/security`)
    await page.getByRole('link', { name: origin }).waitFor()
    expect(await page.getByRole('button', { name: 'Add a passkey' }).count()).toBe(0)
    await context.close()
  })

  test('a passkey is added, renamed, signs in by the button and by the offer of the browser, and is removed', async () => {
    const { page, complaints } = opened
    await plugIn()
    await page.goto(security)
    await page.getByText('None yet. A passkey signs you in').waitFor()
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('<b>Laptop</b>')
    await dialog.getByLabel('Your password').fill('not the password')
    await dialog.getByRole('button', { name: 'Continue' }).click()
    await dialog.getByRole('alert').getByText('The password is not right.').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByLabel('Your password').fill(goodPassword)
    await dialog.getByRole('button', { name: 'Continue' }).click()
    await page.getByRole('cell', { name: '<b>Laptop</b> On one device' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])

    await page.getByRole('button', { name: 'Actions for <b>Laptop</b>' }).click()
    await page.getByRole('menuitem', { name: 'Rename' }).click()
    await dialog.getByLabel('Name').fill('Phone')
    await dialog.getByRole('button', { name: 'Rename' }).click()
    await page.getByRole('cell', { name: 'Phone On one device' }).waitFor()

    // The same device again: it has one of this user already.
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await dialog.getByLabel('Your password').fill(goodPassword)
    await dialog.getByRole('button', { name: 'Continue' }).click()
    await dialog.getByText('This device has a passkey of yours already.').waitFor()
    await page.keyboard.press('Escape')

    await takeOffers(false)
    await signOut()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('heading', { name: 'First steps' }).waitFor()

    await takeOffers(true)
    // The screen that is left has that heading too.
    await Promise.all([page.waitForURL(/\/app\/sign-in/), signOut()])
    await page.getByRole('heading', { name: 'First steps' }).waitFor()

    await page.goto(security)
    await page.getByRole('button', { name: 'Actions for Phone' }).click()
    await page.getByRole('menuitem', { name: 'Remove' }).click()
    await page.getByRole('button', { name: 'Remove the passkey' }).click()
    await page.getByText('None yet. A passkey signs you in').waitFor()
    await signOut()
    await page.getByRole('alert').getByText('This passkey is not known here').waitFor()
    await page.setViewportSize(phone)
    expect(await accessibilityFaults(page)).toEqual([])
    expect(complaints).toEqual([])
  })

  test('the identity provider is linked, signs in, leads to no other site, and its link is removed', async () => {
    const linked = await signUp(service)
    const { page, context } = await openDashboard(chromium.browser, service, { person: linked })
    const screen = `/app/${service.accountId}/live/settings/security`
    await page.goto(screen)
    await page.getByText('Not linked yet.').waitFor()
    await page.getByRole('button', { name: 'Link Example <b>' }).click()
    await page.getByRole('dialog').getByLabel('Your password').fill(goodPassword)
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.locator('input[name=login]').fill('ada')
    await page.locator('input[name=password]').fill('any')
    await page.locator('button[type=submit]').click()
    await page.locator('form[action*="/interaction/"] button[type=submit]').click()
    await page.getByRole('cell', { name: `ada@example.com ${provider.settings.issuer}` }).waitFor()
    expect(page.url()).toBe(`${service.url}${screen}`)
    expect(await accessibilityFaults(page)).toEqual([])

    await page.getByRole('button', { name: linked.email }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign in with Example <b>' }).waitFor()
    await page.goto(`/app/sign-in?next=${encodeURIComponent('//evil.example/')}`)
    expect(await accessibilityFaults(page)).toEqual([])
    await page.getByRole('button', { name: 'Sign in with Example <b>' }).click()
    // The provider knows the browser still.
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()

    await page.goto('/app/provider?error=access_denied&state=x')
    await page.getByRole('heading', { name: 'You are not signed in' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.goto('/app/provider?code=x&state=y')
    await page.getByRole('alert').getByText('this browser did not ask for it').waitFor()

    await page.goto(screen)
    await page.getByRole('button', { name: 'Actions for ada@example.com' }).click()
    await page.getByRole('menuitem', { name: 'Remove the link' }).click()
    await page.getByRole('button', { name: 'Remove the link' }).click()
    await page.getByText('Not linked yet.').waitFor()
    await context.close()
  })

  test('a user changes their own name, and ends another session, also where that fails at first', async () => {
    const own = await signUp(service)
    const { page, context } = await openDashboard(chromium.browser, service, { person: own })
    await page.goto(`/app/${service.accountId}/live/settings/security`)
    const change = page.getByRole('button', { name: 'Change your name' })
    expect(await change.isDisabled()).toBe(true)
    await page.getByLabel('Your name').fill(' ')
    await change.click()
    await page.getByText('Must not be blank').waitFor()
    await page.getByLabel('Your name').fill('Ada <b>King</b>')
    await change.click()
    await page.getByText('Your name was changed.').waitFor()
    expect((await own.send('GET', '/v1/session')).body).toMatchObject({ user: { name: 'Ada <b>King</b>' } })

    const { email, password } = own
    await service.client.send('POST', '/v1/session', {
      key: null,
      headers: pageHeaders(service.url),
      json: { email, password },
    })
    await page.goto(`/app/${service.accountId}/live/settings/sessions`)
    const end = page.getByRole('button', { name: /^End the session of / })
    await end.click()
    const dialog = page.getByRole('dialog')
    const refusal = { error: { code: 'internal_error', message: 'It broke.', requestId: 'req_1', details: [] } }
    await page.route('**/v1/sessions/*', (route) => route.fulfill({ status: 500, json: refusal }))
    await dialog.getByRole('button', { name: 'End it' }).click()
    await dialog.getByRole('alert').getByText('It broke.').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await page.unroute('**/v1/sessions/*')
    await dialog.getByRole('button', { name: 'End it' }).click()
    await end.waitFor({ state: 'detached' })
    await context.close()
  })

  /** The virtual authenticator takes each offer of the browser at once. `false`: there are none, and the button is left. */
  async function takeOffers(isTaken: boolean): Promise<void> {
    await opened.page.evaluate(`PublicKeyCredential.isConditionalMediationAvailable = async () => ${isTaken}`)
  }

  async function signOut(): Promise<void> {
    const { page } = opened
    await page.getByRole('button', { name: person.email }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
  }
})
