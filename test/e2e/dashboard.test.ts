import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { linkUrl, makeLink } from '../../server/users/links.ts'
import { stepAt, totpCode } from '../../server/users/totp.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { createTestClient } from '../support/client.ts'
import { type DashboardPage, openDashboard, phone, shown } from '../support/dashboard.ts'
import { goodPassword, signUp } from '../support/people.ts'
import { answer, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

describeInBrowser('the dashboard in a browser', { timeout: 90_000 }, () => {
  const email = 'ada@example.com'
  let service: TestService
  let chromium: TestBrowser
  let owner: DashboardPage
  let page: Page
  let root: string

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService(), startBrowser()])
    owner = await openDashboard(chromium.browser, service)
    page = owner.page
    root = `/app/${service.accountId}/live`
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
  })

  async function fillSignIn(on: Page, password: string): Promise<void> {
    await on.getByLabel('Email').fill(email)
    await on.getByRole('textbox', { name: 'Password' }).fill(password)
    await on.getByRole('button', { name: 'Sign in' }).click()
  }

  async function signOut(on: Page): Promise<void> {
    await on.getByRole('button', { name: email }).click()
    await on.getByRole('menuitem', { name: 'Sign out' }).click()
    await on.getByRole('heading', { name: 'Sign in' }).waitFor()
  }

  describe('the first link', () => {
    let link: string
    beforeAll(async () => {
      const { accountId, database } = service
      const made = await inTransaction(database.db, (trx) =>
        makeLink(trx, { kind: 'first_user', accountId, role: 'owner', at: systemClock.now() }),
      )
      link = linkUrl(service.url, made.token)
    })

    test('the first link loses its token from the address at once', async () => {
      await page.goto(link)
      await page.getByRole('heading', { name: 'Welcome to Postern' }).waitFor()
      expect(page.url()).toBe(`${service.url}/app/accept`)
    })

    test('the first link tells at the field that a password is too short', async () => {
      await page.getByLabel('Your name').fill('Ada Lovelace')
      await page.getByLabel('Email').fill(email)
      await page.getByRole('textbox', { name: 'Password' }).fill('short')
      await page.getByRole('button', { name: 'Create your user' }).click()
      await page.locator('.mantine-PasswordInput-error', { hasText: '12' }).waitFor()
      expect(await page.getByRole('alert').count()).toBe(0)
    })

    test('the first link makes an owner, who sees what to do first', async () => {
      await page.getByRole('textbox', { name: 'Password' }).fill(goodPassword)
      await page.getByRole('button', { name: 'Create your user' }).click()
      await page.getByRole('heading', { name: 'First steps' }).waitFor()
      expect(new URL(page.url()).pathname).toBe(`${root}/overview`)
    })

    test('the first link works no second time', async () => {
      const { page: other, context } = await openDashboard(chromium.browser, service)
      await other.goto(link)
      await other.getByRole('heading', { name: 'This link does not work any more' }).waitFor()
      await context.close()
    })
  })

  test('a first key, shown once, sends an email that then stands in the list', async () => {
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('button', { name: 'Create API key' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('<b>Shop</b>')
    await dialog.getByRole('button', { name: 'Create API key' }).click()
    const key = await dialog.getByRole('button', { name: /^Copy the key/ }).innerText()
    expect(key).toMatch(/^postern_live_/)
    await dialog.getByRole('button', { name: 'I have copied it' }).click()
    await page.getByRole('cell', { name: '<b>Shop</b> postern_live_' }).waitFor()
    expect(await page.content()).not.toContain(key)

    await using client = createTestClient({ url: service.url, key })
    await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    await client.succeed(contract.emails.send, {
      body: { from: 'hello@shop.test', to: 'delivered@simulator.test', subject: 'Welcome', text: 'Hello' },
    })
    await page.getByRole('link', { name: 'Emails' }).click()
    await page.getByRole('link', { name: 'delivered@simulator.test' }).click()
    await page.getByRole('heading', { name: 'Welcome', level: 1 }).waitFor()
    // The screen reads it again until nothing is left to be done.
    await page.locator('.subtitle', { hasText: 'Delivered' }).waitFor()
  })

  test('a revoked key is refused, and stays on the list', async () => {
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('button', { name: 'Actions for <b>Shop</b>' }).click()
    await page.getByRole('menuitem', { name: 'Revoke' }).click()
    await page.getByRole('button', { name: 'Revoke the key' }).click()
    await page
      .getByRole('row', { name: /<b>Shop<\/b>/ })
      .getByRole('cell', { name: 'Revoked', exact: true })
      .waitFor()
  })

  test('test mode is in the address, plainly visible, and has emails of its own', async () => {
    await page.getByRole('link', { name: 'Emails' }).click()
    await page.getByRole('heading', { name: 'Emails', level: 1 }).waitFor()
    await page.getByText('Test', { exact: true }).click()
    await page.getByRole('heading', { name: 'No emails in test mode yet' }).waitFor()
    expect(new URL(page.url()).pathname).toBe(`/app/${service.accountId}/test/emails`)
    await page.getByText('Test mode.', { exact: true }).waitFor()
    await page.getByText('Live', { exact: true }).click()
    await page.getByRole('link', { name: 'delivered@simulator.test' }).waitFor()
  })

  test('filters stand in the address and hold when it is opened again', async () => {
    await page.goto(`${root}/emails?status=bounced`)
    await page.getByRole('heading', { name: 'No email fits these filters' }).waitFor()
    await page.getByLabel('State').selectOption('delivered')
    await page.getByRole('link', { name: 'delivered@simulator.test' }).waitFor()
    expect(new URL(page.url()).searchParams.get('status')).toBe('delivered')
  })

  test('the authenticator app is set up with a QR code, and recovery codes are shown once', async () => {
    await page.goto(`${root}/settings/security`)
    await page.getByRole('button', { name: 'Set up' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('textbox', { name: 'Your password' }).fill(goodPassword)
    await dialog.getByRole('button', { name: 'Continue' }).click()
    await dialog.getByRole('img', { name: 'QR code of the secret' }).waitFor()
    const secret = await dialog.getByRole('button', { name: /^Copy the secret/ }).innerText()
    await dialog.getByRole('textbox', { name: 'Code' }).fill(totpCode(secret.trim(), stepAt(systemClock.now())))
    await dialog.getByRole('button', { name: 'Turn on' }).click()
    const codes = await dialog.locator('pre').innerText()
    expect(codes.split('\n')).toHaveLength(10)
    await dialog.getByRole('button', { name: 'I have kept them' }).click()
    await page.getByText('Enabled').waitFor()

    await signOut(page)
    await page.goto(`/app/sign-in?next=${encodeURIComponent('https://evil.example/')}`)
    await fillSignIn(page, 'not the password at all')
    await page.getByRole('alert').waitFor()
    await fillSignIn(page, goodPassword)
    await page.getByRole('textbox', { name: 'Code' }).fill('000000')
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByRole('alert').waitFor()
    await page.getByRole('textbox', { name: 'Code' }).fill(codes.split('\n')[0] ?? '')
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    expect(page.url()).toBe(`${service.url}${root}/overview`)
  })

  test('a session that was ended elsewhere leads to the form, and back to the screen afterwards', async () => {
    const person = await signUp(service)
    const { page: mine, context } = await openDashboard(chromium.browser, service, { person })
    await mine.goto(`${root}/webhooks`)
    await shown(mine)
    await person.send('DELETE', '/v1/session')
    await mine.getByRole('link', { name: 'Domains' }).click()
    await mine.getByLabel('Email').fill(person.email)
    await mine.getByRole('textbox', { name: 'Password' }).fill(person.password)
    await mine.getByRole('button', { name: 'Sign in' }).click()
    await mine.getByRole('heading', { name: 'Domains', level: 1 }).waitFor()
    await context.close()
  })

  /** Opens a page for a user of their own, on a line to the service that can be cut. */
  async function openOnLine() {
    const person = await signUp(service)
    const line = await startTcpProxy({ host: '127.0.0.1', port: Number(new URL(service.url).port) })
    const { page: mine, context } = await openDashboard(
      chromium.browser,
      { url: `http://127.0.0.1:${line.port}` },
      { person },
    )
    const end = async () => {
      await context.close()
      await line[Symbol.asyncDispose]()
    }
    return { person, line, mine, [Symbol.asyncDispose]: end }
  }

  test('a session that cannot be read while the service is away keeps what is shown, until it is read again', async () => {
    await using opened = await openOnLine()
    const { line, mine } = opened
    await mine.clock.install()
    await mine.goto(`${root}/settings/api-keys`)
    await shown(mine)
    await mine.getByRole('button', { name: 'Create API key' }).first().click()
    const name = mine.getByRole('dialog').getByLabel('Name')
    await name.fill('Half a key')
    await line.cut()
    const notice = mine.getByText('Your session cannot be read at the moment')
    await mine.clock.fastForward(60_000)
    await mine.evaluate("dispatchEvent(new Event('visibilitychange'))")
    await notice.waitFor()
    expect(await name.inputValue()).toBe('Half a key')
    expect(await notice.count()).toBe(1)
    const heading = mine.getByRole('heading', { level: 1, name: 'API keys', includeHidden: true })
    expect(await heading.count()).toBe(1)
    await line.mend()
    await mine.clock.fastForward(10_000)
    await notice.waitFor({ state: 'detached' })
    expect(await name.inputValue()).toBe('Half a key')
  })

  test('signing out while the service is away says that one is still signed in, and stays until it works', async () => {
    await using opened = await openOnLine()
    const { person, line, mine } = opened
    await mine.goto(`${root}/webhooks`)
    await shown(mine)
    await line.cut()
    const signOutOnce = async () => {
      await mine.getByRole('button', { name: person.email }).click()
      await mine.getByRole('menuitem', { name: 'Sign out' }).click()
    }
    await signOutOnce()
    const notice = mine.getByRole('alert').filter({ hasText: 'You are still signed in' })
    await notice.getByText('The service cannot be reached').waitFor()
    expect(new URL(mine.url()).pathname).toBe(`${root}/webhooks`)
    await line.mend()
    expect((await person.send('GET', '/v1/session')).status).toBe(200)
    await signOutOnce()
    await mine.getByRole('heading', { name: 'Sign in' }).waitFor()
    await notice.waitFor({ state: 'detached' })
    expect((await person.send('GET', '/v1/session')).status).toBe(401)
  })

  test('somebody who is invited joins by the link, gets another role, and is removed', async () => {
    await page.goto(`${root}/settings/members`)
    await page.getByRole('button', { name: 'Invite' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Email').fill('grace@example.com')
    await dialog.getByRole('radio', { name: 'Marketer' }).check()
    await dialog.getByRole('button', { name: 'Invite' }).click()
    const link = await dialog.getByRole('button', { name: /^Copy the link/ }).innerText()
    await dialog.getByRole('button', { name: 'I have copied it' }).click()

    const { page: theirs, context } = await openDashboard(chromium.browser, service)
    await theirs.goto(link.trim())
    await theirs.getByText('as marketer').waitFor()
    await theirs.getByLabel('Your name').fill('Grace Hopper')
    await theirs.getByRole('textbox', { name: 'Password' }).fill(goodPassword)
    await theirs.getByRole('button', { name: 'Join' }).click()
    await theirs.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()

    await page.reload()
    await page.getByRole('button', { name: 'Actions for Grace Hopper' }).click()
    await page.getByRole('menuitem', { name: 'Change role' }).click()
    await dialog.getByRole('radio', { name: 'Viewer' }).check()
    await dialog.getByRole('button', { name: 'Change role' }).click()
    await page
      .getByRole('row', { name: /Grace Hopper/ })
      .getByText('Viewer')
      .waitFor()
    await page.getByRole('button', { name: 'Actions for Grace Hopper' }).click()
    await page.getByRole('menuitem', { name: 'Remove' }).click()
    await dialog.getByRole('button', { name: 'Remove Grace Hopper' }).click()
    await page.getByRole('row', { name: /Grace Hopper/ }).waitFor({ state: 'detached' })
    await theirs.goto('/app')
    await theirs.getByRole('heading', { name: 'You are in no account' }).waitFor()
    await context.close()
  })

  test('a webhook is added, tells why its test failed, and is deleted by its name alone', async () => {
    await using receiver = await startReceiver()
    receiver.respond(answer(500, { body: 'database is down' }))
    await page.goto(`${root}/webhooks`)
    await page.getByRole('button', { name: 'Add webhook' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('URL').fill(receiver.url)
    await dialog.getByRole('button', { name: 'Add webhook' }).click()
    await dialog.getByText('Choose at least one event').waitFor()
    await dialog.getByRole('checkbox', { name: 'email.bounced' }).check()
    await dialog.getByRole('button', { name: 'Add webhook' }).click()
    expect(await dialog.getByRole('button', { name: /^Copy the secret/ }).innerText()).toContain('whsec_')
    await dialog.getByRole('button', { name: 'I have copied it' }).click()

    await page.getByRole('button', { name: 'Send a test' }).click()
    await dialog.getByRole('button', { name: 'Send it' }).click()
    await dialog.getByText('The endpoint did not accept it').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await page.getByRole('table').getByRole('link', { name: 'email.bounced' }).click()
    await page.getByText('database is down').waitFor()

    await page.getByRole('link', { name: 'Webhook', exact: true }).click()
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    const remove = dialog.getByRole('button', { name: 'Delete the webhook' })
    expect(await remove.isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill(new URL(receiver.url).host)
    await remove.click()
    await page.getByRole('heading', { name: 'No webhooks in live mode yet' }).waitFor()
  })

  test('a viewer is shown no keys, no members and no buttons that change something', async () => {
    const person = await signUp(service, { role: 'viewer' })
    const { page: viewed, context } = await openDashboard(chromium.browser, service, { person })
    await viewed.goto(`${root}/webhooks`)
    await shown(viewed)
    const links = await viewed.getByRole('navigation').getByRole('link').allInnerTexts()
    expect(links).toEqual(expect.arrayContaining(['Emails', 'Webhooks', 'Sessions']))
    expect(links).not.toEqual(expect.arrayContaining(['API keys']))
    expect(links).not.toEqual(expect.arrayContaining(['Members']))
    expect(await viewed.getByRole('button', { name: 'Add webhook' }).count()).toBe(0)
    await viewed.goto(`${root}/settings/api-keys`)
    await viewed.getByText('lacks the permission api_keys:read').waitFor()
    await context.close()
  })

  test('signing in, the link to the content and a dialog are reached by the keyboard alone', async () => {
    const person = await signUp(service)
    const { page: keyed, context } = await openDashboard(chromium.browser, service)
    await keyed.goto('/app/sign-in')
    await keyed.getByLabel('Email').waitFor()
    await keyed.keyboard.type(person.email)
    await keyed.keyboard.press('Tab')
    await keyed.keyboard.type(person.password)
    await keyed.keyboard.press('Enter')
    await keyed.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await keyed.goto(`${root}/webhooks`)
    await shown(keyed)
    await keyed.keyboard.press('Tab')
    await expect.poll(() => focused(keyed)).toBe('Skip to the content')
    await keyed.keyboard.press('Enter')
    await keyed.keyboard.press('Tab')
    await expect.poll(() => focused(keyed)).toBe('See the event types')
    await keyed.keyboard.press('Tab')
    await expect.poll(() => focused(keyed)).toBe('Add webhook')
    await keyed.keyboard.press('Enter')
    await keyed.getByRole('dialog').waitFor()
    await expect.poll(() => keyed.evaluate('document.activeElement.closest("[role=dialog]") !== null')).toBe(true)
    await keyed.keyboard.press('Escape')
    await keyed.getByRole('dialog').waitFor({ state: 'detached' })
    await expect.poll(() => focused(keyed)).toBe('Add webhook')
    await context.close()
  })

  test('the navigation on a phone is out of reach until it is opened, and closes behind a link', async () => {
    const person = await signUp(service)
    const { page: small, context } = await openDashboard(chromium.browser, service, { person, viewport: phone })
    await small.goto(`${root}/emails`)
    await shown(small)
    const link = small.getByRole('link', { name: 'Domains' })
    expect(await link.isVisible()).toBe(false)
    await small.getByRole('button', { name: 'Navigation' }).click()
    await link.click()
    await small.getByRole('heading', { name: 'Domains', level: 1 }).waitFor()
    await link.waitFor({ state: 'hidden' })
    await context.close()
  })

  test('the dashboard broke no rule of the Content-Security-Policy, and asked nobody else', () => {
    expect(owner.complaints).toEqual([])
  })
})

function focused(page: Page): Promise<unknown> {
  return page.evaluate('document.activeElement?.textContent')
}
