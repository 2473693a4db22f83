import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { contract } from '../../contract/index.ts'
import { createKeyServices } from '../support/api-keys.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { accessibilityFaults, desktop, openDashboard, phone, screenFaults, shown } from '../support/dashboard.ts'
import { patienceMs } from '../support/patience.ts'
import { type Person, signUp, signUpOperator } from '../support/people.ts'
import { type Receiver, silence, startReceiver } from '../support/receiver.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Runs in a browser that takes it for HTML, and renames the page. */
const script = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`

describeInBrowser('the screens for operators', { timeout: 120_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let receiver: Receiver
  let operator: Person
  /** An account with script for a name, whose URL is late. */
  let accountId: string
  let auditKey: string

  beforeAll(async () => {
    ;[service, chromium, receiver] = await Promise.all([
      startTestService({ delivery: { places: 4, endpointMax: 1 } }),
      startBrowser(),
      startReceiver(),
    ])
    receiver.respond(silence)
    operator = await signUpOperator(service)
    await operator.send('PATCH', '/v1/user', { json: { name: script } })
    const { db } = service.database
    const { accounts, apiKeys } = createKeyServices(service.clock)
    accountId = (await accounts.create(db, { name: script, plan: 'one' })).id
    await signUp(service, { accountId, email: 'member@example.com' })
    const permissions = ['full_access'] as const
    auditKey = (await apiKeys.create(db, { accountId, mode: 'live', permissions, name: script })).key
    const { client } = service
    await client.succeed(contract.webhooks.create, { body: { url: receiver.url, events: ['subscriber.added'] } })
    // One is tried at a time, each until it times out: so many are late for longer than these tests take.
    for (let count = 0; count < 40; count += 1) {
      await client.succeed(contract.subscribers.create, { body: { email: `ada${count}@example.com` } })
    }
    const instance = () => operator.send('GET', '/v1/operator/instance')
    await vi.waitUntil(async () => Object((await instance()).body).destinations.length === 1, { timeout: patienceMs })
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
    await receiver?.stop()
  })

  test.each([
    { colorScheme: 'light', viewport: desktop },
    { colorScheme: 'dark', viewport: phone },
  ] as const)(
    'the screens for operators in $colorScheme, $viewport.width pixels wide: axe finds nothing, no script of a field runs, nothing breaks the policy',
    async ({ colorScheme, viewport }) => {
      const { page, context, complaints } = await openDashboard(chromium.browser, service, {
        person: operator,
        colorScheme,
        viewport,
      })
      const faults: string[] = []
      for (const screen of ['accounts', `accounts/${accountId}`, 'service', 'storage', 'accounts?search=nobody']) {
        await page.goto(`/app/operator/${screen}`)
        await shown(page)
        await keepScreenshots(page, `operator-${screen}`)
        faults.push(...(await screenFaults(page)).map((fault) => `${screen}: ${fault}`))
        expect(await page.evaluate('document.documentElement.scrollWidth'), screen).toBe(viewport.width)
        expect(await page.title()).toMatch(/ · Operator · Postern$/)
        expect(await page.getByRole('alert').count(), screen).toBe(0)
      }
      expect(faults).toEqual([])
      expect(complaints).toEqual([])
      await context.close()
    },
  )

  test('an operator finds an account from their own, and gives it another plan', async () => {
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person: operator })
    await page.goto('/app/')
    await shown(page)
    await page.getByRole('button', { name: operator.email }).click()
    await page.getByRole('menuitem', { name: 'Operator' }).click()
    await page.getByRole('heading', { name: 'Accounts', level: 1 }).waitFor()
    await page.getByLabel('Name or ID begins with').fill('<IMG')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Theirs' }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: script }).click()
    await page.getByText('member@example.com').waitFor()
    await page.getByRole('button', { name: 'Change plan' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('radio', { name: 'scale' }).check()
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Change plan' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('strong').filter({ hasText: 'scale' }).waitFor()
    const { data } = await service.client.as(auditKey).succeed(contract.auditLog.list, { query: {} })
    expect(data[0]).toMatchObject({ action: 'account.plan_changed', details: { from: 'one', to: 'scale' } })
    await page.getByRole('link', { name: 'Back to your account' }).click()
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    expect(complaints).toEqual([])
    await context.close()
  })

  test('the service names the process and the host that is late', async () => {
    const { page, context } = await openDashboard(chromium.browser, service, { person: operator })
    await page.goto('/app/operator/service')
    await shown(page)
    const processes = page.getByRole('table', { name: 'Processes' })
    expect(await processes.innerText()).toMatch(/Alive[\s\S]*api, worker/)
    const late = page.getByRole('table', { name: 'Late destinations' })
    expect(await late.innerText()).toContain(new URL(receiver.url).hostname)
    await context.close()
  })

  test('nothing is there for a user who is no operator, and no menu leads there', async () => {
    const person = await signUp(service)
    const { page, context } = await openDashboard(chromium.browser, service, { person })
    for (const screen of ['', '/accounts', `/accounts/${accountId}`, '/service', '/storage']) {
      await page.goto(`/app/operator${screen}`)
      await page.getByRole('heading', { name: 'Nothing is here' }).waitFor()
    }
    await page.goto('/app/')
    await shown(page)
    await page.getByRole('button', { name: person.email }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).waitFor()
    expect(await page.getByRole('menuitem', { name: 'Operator' }).count()).toBe(0)
    await context.close()
  })
})
