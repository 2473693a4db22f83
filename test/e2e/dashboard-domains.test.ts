import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DomainRecord } from '../../contract/domains.ts'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { screenFaults } from '../support/dashboard.ts'
import { type DnsServer, startDnsServer } from '../support/dns-server.ts'
import { createDashboardWorld, type DashboardWorld, type OpenedDashboard } from '../support/worlds/dashboard.ts'
import { publish } from '../support/worlds/domains.ts'

/* Each step builds on the one before: one domain, from its first record to its next keys. */
describeInBrowser('a domain in the dashboard', { timeout: 90_000 }, () => {
  const name = 'shop.example'
  let dns: DnsServer
  let world: DashboardWorld
  let opened: OpenedDashboard
  let page: Page
  let main: Locator
  let dialog: Locator

  beforeAll(async () => {
    dns = await startDnsServer()
    world = await createDashboardWorld({}, { mail: { dnsServers: [dns.address] } })
    opened = await world.openScreen('domains')
    ;({ page, main, dialog } = opened)
    await opened.context.grantPermissions(['clipboard-read', 'clipboard-write'])
  })
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    await dns?.stop()
  })

  /** The record with this heading. */
  const record = (title: string) =>
    main.getByRole('article').filter({ has: page.getByRole('heading', { name: title, exact: true }) })

  /** Returns the state that is shown for each record, by its heading. */
  async function states(): Promise<Record<string, string>> {
    const articles = await main.getByRole('article').all()
    return Object.fromEntries(
      await Promise.all(
        articles.map(async (article) => [
          await article.getByRole('heading').innerText(),
          await article.locator('.state').innerText(),
        ]),
      ),
    )
  }

  /** Clicks a button that copies, and returns what a paste would give. */
  async function copied(button: Locator): Promise<string> {
    await button.click()
    await button.getByText('Copied').waitFor({ state: 'attached' })
    return page.evaluate('navigator.clipboard.readText()')
  }

  const checkNow = () => main.getByRole('button', { name: 'Check now' }).click()

  async function domain() {
    const { data } = await world.service.client.succeed(contract.domains.list, { query: {} })
    const id = data[0]?.id ?? ''
    return world.service.client.succeed(contract.domains.get, { params: { id } })
  }

  test('a domain that is added shows which records to publish, and that none is found', async () => {
    await main.getByRole('button', { name: 'Add domain' }).first().click()
    await dialog.getByLabel('Domain').fill(name)
    await dialog.getByRole('button', { name: 'Add domain' }).click()
    await page.getByRole('heading', { level: 1, name }).waitFor()
    await checkNow()
    const nothing = {
      'DKIM (RSA) · required': 'Missing',
      'DKIM (Ed25519) · recommended': 'Missing',
      'SPF · required': 'Missing',
      'Return path · required': 'Missing',
      'DMARC · recommended': 'Missing',
    }
    await expect.poll(states).toEqual(nothing)
    await main.getByText('3 of the required records are not found yet').waitFor()
    expect(await screenFaults(page)).toEqual([])
  })

  test('a record that was published as it was copied is found by the next check', async () => {
    const spf = record('SPF · required')
    const owner = await copied(spf.getByRole('button', { name: /^Copy the name of SPF/ }))
    const value = await copied(spf.getByRole('button', { name: /^Copy the value of SPF/ }))
    dns.set(owner, { TXT: [value] })
    await checkNow()
    await expect.poll(states).toMatchObject({ 'SPF · required': 'Verified', 'Return path · required': 'Missing' })
    await main.getByText('2 of the required records are not found yet').waitFor()
  })

  test('a domain in the dashboard with all records it is verified, and its deliverability tells what is still missing', async () => {
    publish(dns, await domain())
    await checkNow()
    await main.locator('.subtitle', { hasText: 'Verified' }).waitFor()
    expect(new Set(Object.values(await states()))).toEqual(new Set(['Verified']))
    await main.getByRole('link', { name: 'Check the deliverability' }).click()
    await page.getByRole('heading', { level: 1, name: `Deliverability of ${name}` }).waitFor()
    const before = { SPF: 'Pass', DKIM: 'Pass', 'Return path': 'Pass', DMARC: 'Warn', 'MTA-STS': 'Optional' }
    await expect.poll(states).toMatchObject(before)
    await main.getByText(`publish "v=DMARC1; p=quarantine" at "_dmarc.${name}"`).waitFor()
    await main.getByRole('heading', { name: 'Nothing bounced' }).waitFor()
    expect(await screenFaults(page)).toEqual([])
    dns.set(`_dmarc.${name}`, { TXT: ['v=DMARC1; p=reject'] })
    await checkNow()
    await expect.poll(states).toMatchObject({ DMARC: 'Pass' })
  })

  test('rotated keys sign when their records are found, and until then the present ones stay', async () => {
    await main.getByRole('link', { name, exact: true }).click()
    await page.getByRole('heading', { level: 1, name, exact: true }).waitFor()
    const before = await domain()
    await main.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Rotate the keys' }).click()
    await dialog.getByRole('button', { name: 'Rotate the keys' }).click()
    const next = 'DKIM (RSA) of the new key · recommended'
    await record(next).waitFor()
    const value = await copied(record(next).getByRole('button', { name: /^Copy the value of DKIM/ }))
    const isRsa = ({ purpose }: DomainRecord) => purpose === 'dkim_rsa'
    expect(before.records.filter(isRsa).map((old) => old.value)).not.toContain(value)
    await main.locator('.subtitle', { hasText: 'Verified' }).waitFor()

    publish(dns, await domain(), ['dkim_rsa', 'dkim_ed25519'])
    await checkNow()
    await record(next).waitFor({ state: 'detached' })
    const signing = (await domain()).records.filter(({ key }) => key === 'signing')
    expect(signing.filter(isRsa)).toMatchObject([{ value, status: 'verified' }])
    const earlier = main.getByRole('table', { name: 'Records of earlier keys' })
    const old = before.records.filter(({ key }) => key === 'signing').map((signed) => signed.name)
    await expect.poll(() => earlier.getByRole('button').allInnerTexts()).toEqual(old)
    expect(await screenFaults(page)).toEqual([])
  })

  test('a domain is added with a return path of its own, of which a wrong one is refused at its field', async () => {
    await main.getByRole('link', { name: 'Domains' }).click()
    await main.getByRole('button', { name: 'Add domain' }).first().click()
    await dialog.getByLabel('Domain').fill('other.example')
    await dialog.getByLabel('Return path').fill('not a name')
    await dialog.getByRole('button', { name: 'Add domain' }).click()
    await dialog.getByText('Must be a label, or several with dots').waitFor()
    await dialog.getByLabel('Return path').fill('bounces')
    await dialog.getByRole('button', { name: 'Add domain' }).click()
    await page.getByRole('heading', { level: 1, name: 'other.example' }).waitFor()
    expect(await domain()).toMatchObject({ name: 'other.example', returnPath: 'bounces' })
  })

  test('a domain in the dashboard broke no rule of the Content-Security-Policy', () => {
    expect(opened.complaints).toEqual([])
  })
})
