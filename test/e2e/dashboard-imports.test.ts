import { readFile } from 'node:fs/promises'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { createAccountService } from '../../server/accounts/service.ts'
import { newId } from '../../server/shared/ids.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, desktop, openDashboard, phone, shown } from '../support/dashboard.ts'
import { signUp } from '../support/people.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { createDashboardWorld, type DashboardWorld } from '../support/worlds/dashboard.ts'
import { zipOf } from '../support/zip.ts'

/** Runs in a browser that takes it for HTML, and renames the page. */
const script = `<img src=x onerror="document.title='owned'">`

/** A CSV file that the service and the browser must read alike, with an unusual separator, encoding and cells. */
const csv = [
  `Adresse;Vorname;Tarif;${script}`,
  `ada@example.com;Zoë;pro;${script}`,
  'not an address;Nobody;pro;',
  'grace@example.com;Grace;basic;"a; b"',
  '=1+1;Formula;pro;',
].join('\r\n')

describeInBrowser('imports in the dashboard', { timeout: 90_000 }, () => {
  let world: DashboardWorld
  let service: TestService
  let audienceId: string

  beforeAll(async () => {
    world = await createDashboardWorld()
    service = world.service
    const { client } = service
    audienceId = (await client.succeed(contract.audiences.create, { body: { name: 'Readers' } })).id
    await client.succeed(contract.contactProperties.create, { body: { key: 'plan', type: 'string' } })
    await client.succeed(contract.topics.create, { body: { name: script, default: 'opt_in' } })
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  const choose = (page: Page, name: string, content: string | Buffer) =>
    page
      .locator('input[type=file]')
      .setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(content as string) })

  const readAs = (main: Locator, column: string) =>
    main.getByRole('combobox', { name: `Column ${column} is read as`, exact: true })

  test.each([
    ['on a desktop', desktop],
    ['on a phone', phone],
  ])(
    'a file is chosen, its columns are named, and what failed is downloaded with the reasons, %s',
    async (_, viewport) => {
      const name = `${script.replaceAll('"', "'")} ${viewport.width}.csv`
      const { page, main, context, complaints } = await world.openScreen(`audiences/${audienceId}`, { viewport })
      await main.getByRole('link', { name: 'Import', exact: true }).click()
      await page.getByRole('heading', { level: 1, name: 'Import contacts' }).waitFor()
      // The audience that one came from is chosen. (`waitForFunction` evaluates text, which the screen's CSP forbids.)
      const chosen = main.getByRole('combobox').first().locator('option:checked')
      await chosen.and(page.getByText('Readers', { exact: true })).waitFor({ state: 'attached' })
      await choose(page, name, Buffer.from(csv, 'latin1'))
      await main.getByText('Zoë').filter({ visible: true }).waitFor()
      await main.getByText('As found (semicolon)').waitFor({ state: 'attached' })
      await main.getByText('As found (windows-1252)').waitFor({ state: 'attached' })
      expect(await readAs(main, 'Adresse').inputValue()).toBe('ignore')
      await main.getByRole('button', { name: 'Begin the import' }).click()
      await main.getByRole('alert').getByText('Say which column has the email addresses.').waitFor()
      await readAs(main, 'Adresse').selectOption('Email')
      await readAs(main, 'Vorname').selectOption('First name')
      await readAs(main, 'Tarif').selectOption('plan')
      await keepScreenshots(page, 'import-new')
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
      await main.getByRole('button', { name: 'Begin the import' }).click()

      await main.locator('.subtitle', { hasText: 'Completed' }).waitFor()
      const tiles = await main.locator('.tiles').innerText()
      expect(tiles.replaceAll(/\s+/g, ' ')).toMatch(/Rows read 4 Created \d Updated 0 Skipped \d Suppressed 0 Failed 2/)
      await keepScreenshots(page, 'import-completed')
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        main.getByRole('button', { name: 'Download the failed rows' }).click(),
      ])
      expect(download.suggestedFilename()).toMatch(/^failed-rows-imp_\w+\.csv$/)
      const lines = (await readFile(await download.path(), 'utf8')).trim().split('\r\n')
      expect(lines).toHaveLength(3)
      expect(lines[1]).toMatch(/^not an address,Nobody,pro,,2,the address is not an email address$/)
      expect(lines[2]).toMatch(/^'=1\+1,Formula,pro,,4,/)
      expect(await accessibilityFaults(page)).toEqual([])
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
      expect(await page.title()).toContain(script.replaceAll('"', "'"))

      await main.getByRole('link', { name: 'Imports' }).click()
      await main.getByRole('link', { name }).waitFor()
      await shown(page)
      expect(await page.title()).toBe('Imports · Ours · Postern')
      const { data } = await service.client.succeed(contract.contacts.list, { params: { audienceId }, query: {} })
      expect(data.map(({ email, firstName, properties }) => ({ email, firstName, properties }))).toEqual([
        { email: 'grace@example.com', firstName: 'Grace', properties: { plan: 'basic' } },
        { email: 'ada@example.com', firstName: 'Zoë', properties: { plan: 'pro' } },
      ])
      expect(complaints).toEqual([])
      await context.close()
    },
  )

  test('a field that is taken by another column is given free, and what the reader chose is what is imported', async () => {
    const { page, main, context } = await world.openScreen(`imports/new?audience=${audienceId}`)
    await choose(page, 'two.csv', 'email,Work mail,plan\nhome@example.com,work@example.com,team\n')
    await readAs(main, 'email').waitFor()
    expect(await readAs(main, 'plan').inputValue()).toBe('properties.plan')
    await readAs(main, 'Work mail').selectOption('Email')
    expect(await readAs(main, 'email').inputValue()).toBe('ignore')
    await readAs(main, 'plan').selectOption('Left out')
    await main.getByLabel('Status of new contacts').selectOption('Unsubscribed')
    await main.getByRole('button', { name: 'Begin the import' }).click()
    await main.locator('.subtitle', { hasText: 'Completed' }).waitFor()
    const { data } = await service.client.succeed(contract.contacts.list, {
      params: { audienceId },
      query: { search: 'work@' },
    })
    expect(data).toMatchObject([{ email: 'work@example.com', status: 'unsubscribed', properties: {} }])
    await context.close()
  })

  test('people who unsubscribed in a file of Mailchimp are announced and go to the suppression list alone', async () => {
    const { page, main, context } = await world.openScreen(`imports/new?audience=${audienceId}`)
    await choose(page, 'unsubscribed.csv', 'Email Address,First Name,UNSUB_TIME\nleft@example.com,Lea,2026-01-01\n')
    await main.getByRole('note').getByText('people who unsubscribed').waitFor()
    expect(await readAs(main, 'Email Address').inputValue()).toBe('email')
    await main.getByRole('button', { name: 'Begin the import' }).click()
    await main.locator('.subtitle', { hasText: 'Completed' }).waitFor()
    const { data } = await service.client.succeed(contract.suppressions.list, {
      query: { address: 'left@example.com' },
    })
    expect(data).toMatchObject([{ reason: 'unsubscribe' }])
    await context.close()
  })

  test.each([
    ['an empty file', '', 'The file is empty'],
    ['two columns of one name', 'email,email\na@example.com,b@example.com\n', 'Two columns are called “email”'],
    ['a quotation mark that is not closed', '"email\na@example.com\n', 'a quotation mark that is not closed'],
    ['too many columns', Array.from({ length: 501 }, (_, index) => `c${index}`).join(), 'At most 500'],
  ])('%s is refused before it is sent', async (_, content, fault) => {
    const { page, main, context } = await world.openScreen('imports/new')
    await choose(page, 'broken.csv', content)
    await main.getByText(fault).waitFor()
    expect(await main.getByRole('button', { name: 'Begin the import' }).count()).toBe(0)
    await context.close()
  })

  test('a ZIP is sent as it is, and shows what its files were taken for; of a workbook the API says what to do', async () => {
    const { page, main, context, complaints } = await world.openScreen(`imports/new?audience=${audienceId}`)
    await choose(page, 'book.xlsx', zipOf([{ name: '[Content_Types].xml', content: '<Types/>' }]))
    await main.getByRole('button', { name: 'Begin the import' }).click()
    await main.getByText('save the table as CSV').waitFor()
    const files = [
      { name: `${script}.csv`, content: `email,${script}\nzip-here@example.com,x\nzip-left@example.com,x\n` },
      { name: 'unsubscribed_1.csv', content: 'Email Address,UNSUB_TIME\nzip-left@example.com,2026-01-01\n' },
      { name: 'logo.png', content: 'PNG' },
    ]
    await choose(page, 'export.zip', zipOf(files))
    await main.getByRole('note').getByText('Of an export of Mailchimp').waitFor()
    await main.getByRole('group', { name: 'Topics' }).getByLabel(script).check()
    expect(await accessibilityFaults(page)).toEqual([])
    await main.getByRole('button', { name: 'Begin the import' }).click()
    await main.locator('.subtitle', { hasText: 'Completed' }).waitFor()
    await keepScreenshots(page, 'import-zip')
    const table = await main.getByRole('table', { name: 'Files of the ZIP' }).innerText()
    expect(table).toContain('Left out: it is no CSV file')
    expect(table).toContain('People who unsubscribed: the suppression list')
    const tiles = await main.locator('.tiles').innerText()
    expect(tiles.replaceAll(/\s+/g, ' ')).toMatch(/Rows read 3 Created 1 Updated 0 Skipped 0 Suppressed 2 Failed 0/)
    await main.getByRole('table', { name: `Columns of ${script}.csv` }).waitFor()
    await main.locator('dd', { hasText: script }).waitFor()
    const { data: people } = await service.client.succeed(contract.subscribers.list, {
      query: { email: 'zip-here@example.com' },
    })
    const params = { id: people[0]?.id ?? '' }
    const chosen = await service.client.succeed(contract.topics.listOfSubscriber, { params })
    expect(chosen.data).toMatchObject([{ name: script, subscribed: true }])
    expect(await accessibilityFaults(page)).toEqual([])
    expect(complaints.filter((complaint) => !complaint.includes('422'))).toEqual([])
    await context.close()
  })

  test('what the API refuses stands at the form, which can be sent again', async () => {
    const { page, main, context } = await world.openScreen(`imports/new?audience=${audienceId}`)
    const property = { key: 'gone', type: 'string' } as const
    await service.client.succeed(contract.contactProperties.create, { body: property })
    await page.reload()
    await choose(page, 'one.csv', 'email,what\nnext@example.com,x\n')
    await readAs(main, 'what').selectOption('gone')
    await service.client.succeed(contract.contactProperties.delete, { params: { key: 'gone' } })
    await main.getByRole('button', { name: 'Begin the import' }).click()
    await main.getByText('"gone" is no property of this account').waitFor()
    await readAs(main, 'what').selectOption('Left out')
    await main.getByRole('button', { name: 'Begin the import' }).click()
    await main.locator('.subtitle', { hasText: 'Completed' }).waitFor()
    await context.close()
  })

  test('an import that goes on shows how far it is, and is canceled when that is confirmed', async () => {
    await using slow = await startTestService({ roles: { worker: false } })
    const member = await signUp(slow)
    const audience = await slow.client.succeed(contract.audiences.create, { body: { name: 'Readers' } })
    const { page, context, complaints } = await openDashboard(world.browser, slow, { person: member })
    const main = page.getByRole('main')
    await page.goto(`/app/${slow.accountId}/test/imports`)
    await main.getByRole('heading', { name: 'No imports in test mode yet' }).waitFor()
    await page.goto(`/app/${slow.accountId}/live/imports/new?audience=${audience.id}`)
    const waits = 'email\nada@example.com\n'
    await choose(page, 'waits.csv', waits)
    await main.getByRole('button', { name: 'Begin the import' }).click()
    await main.getByText('It waits for its turn.').waitFor()
    const progress = main.getByRole('progressbar', { name: 'Share of the file that is done' })
    const share = async () => Number(await progress.getAttribute('aria-valuenow'))
    const head = 'email\n'.length
    await expect.poll(share).toBeCloseTo((100 * head) / waits.length)
    // As a worker does.
    const position = waits.length - 1
    await slow.database.db.updateTable('imports').set({ status: 'running', rows_read: 7, position }).execute()
    await expect.poll(share).toBeCloseTo((100 * position) / waits.length)
    expect(await main.locator('.tiles').innerText()).toMatch(/Rows read\s+7/)
    expect(await accessibilityFaults(page)).toEqual([])
    await main.getByRole('button', { name: 'Cancel the import' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('stay in the audience').waitFor()
    await dialog.getByRole('button', { name: 'Cancel the import' }).click()
    await main.locator('.subtitle', { hasText: 'Canceled' }).waitFor()
    expect(await main.getByRole('button', { name: 'Cancel the import' }).count()).toBe(0)
    expect(complaints).toEqual([])
    await context.close()
  })

  test('all of 1,000 audiences can be chosen, and of more the newest 1,000, which the field says', async () => {
    const { db } = service.database
    const accounts = createAccountService({ clock: service.clock })
    const { id: accountId } = await accounts.create(db, { name: 'Agency', plan: 'free' })
    const person = await signUp(service, { accountId })
    const now = Date.now()
    const audiences = Array.from({ length: 1_001 }, (_, index) => ({
      id: newId('audience', new Date(now + index)),
      account_id: accountId,
      name: `Client ${index}`,
    }))
    await db.insertInto('audiences').values(audiences).execute()
    const { page, main, context, complaints } = await world.open({ person })
    const field = main.getByRole('combobox', { name: 'Audience' })
    await page.goto(`/app/${accountId}/live/imports/new`)
    await main.getByText('The newest 1,000 are offered.').waitFor()
    // With the one that says "Choose one".
    expect(await field.locator('option').count()).toBe(1_001)
    expect(await field.locator('option').last().innerText()).toBe('Client 1')

    await db
      .deleteFrom('audiences')
      .where('id', '=', audiences[500]?.id ?? '')
      .execute()
    await page.reload()
    await field.locator('option', { hasText: /^Client 0$/ }).waitFor({ state: 'attached' })
    expect(await field.locator('option').count()).toBe(1_001)
    expect(await main.getByText('are offered').count()).toBe(0)

    await page.route(/\/v1\/audiences\?.*cursor=/, (route) => route.fulfill({ status: 404, json: {} }))
    await page.reload()
    await main.getByText('The newest 100 are offered.').waitFor()
    expect(await field.locator('option').count()).toBe(101)
    expect(complaints).toEqual([])
    await context.close()
  })
})
