import { readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, desktop, phone, screenFaults } from '../support/dashboard.ts'
import { patienceMs } from '../support/patience.ts'
import { signUp } from '../support/people.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { insertManyContacts } from '../support/segment-people.ts'
import type { TestService } from '../support/service.ts'
import { createDashboardWorld, type DashboardWorld } from '../support/worlds/dashboard.ts'

describeInBrowser('segments in the dashboard', { timeout: 90_000 }, () => {
  let world: DashboardWorld
  let service: TestService
  let audienceId: string
  /** Nobody gets it. */
  let topicId: string

  beforeAll(async () => {
    world = await createDashboardWorld()
    service = world.service
    const { client } = service
    audienceId = (await client.succeed(contract.audiences.create, { body: { name: 'Readers' } })).id
    topicId = (await client.succeed(contract.topics.create, { body: { name: 'Offers', default: 'opt_in' } })).id
    for (const property of [
      { key: 'plan', type: 'string' },
      { key: 'seats', type: 'number' },
      { key: 'vip', type: 'boolean' },
    ] as const) {
      await client.succeed(contract.contactProperties.create, { body: property })
    }
    for (const [email, properties] of [
      ['ada@example.com', { plan: 'pro', seats: 5, vip: true }],
      ['grace@example.com', { plan: 'pro', seats: 1 }],
      ['edsger@example.net', { plan: 'basic', seats: 12 }],
    ] as const) {
      await client.succeed(contract.contacts.add, { params: { audienceId }, body: { email, properties } })
    }
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  /** Waits for a count that is not of conditions of before. */
  const counted = (main: Locator, text: string | RegExp) =>
    main.locator('.segment-count[data-settled="true"]').getByText(text, { exact: true }).waitFor()

  const made = async (name: string, conditions: object) =>
    service.client.succeed(contract.segments.create, { body: { audienceId, name, conditions } as never })

  test.each([
    ['on a desktop', desktop],
    ['on a phone', phone],
  ])('the count follows what is typed, and what is saved is found again, %s', async (_, viewport) => {
    const name = `Pro ${viewport.width}`
    const { page, main, context, complaints } = await world.openScreen(`audiences/${audienceId}`, { viewport })
    await main.getByRole('link', { name: 'Create segment' }).click()
    await page.getByRole('heading', { level: 1, name: 'Create a segment' }).waitFor()
    await counted(main, '3 people match')
    await main.getByLabel('Name').fill(name)

    await main.getByLabel('What is compared').selectOption('plan')
    await main.getByText('Fill in every condition').waitFor()
    await main.getByLabel('Value').fill('pro')
    await counted(main, '2 people match')
    await main.getByRole('link', { name: 'grace@example.com' }).waitFor()
    expect(await main.getByRole('link', { name: 'edsger@example.net' }).count()).toBe(0)

    await main.getByRole('button', { name: 'Add a condition' }).click()
    await main.getByLabel('What is compared').nth(1).selectOption('seats')
    await main.getByLabel('How it is compared').nth(1).selectOption('is at least')
    await main.getByRole('button', { name: 'Create segment' }).click()
    await main.getByText('Enter a value.').waitFor()
    await main.getByLabel('Value').nth(1).fill('5')
    await counted(main, '1 person matches')

    await main.getByLabel('How the conditions go together').selectOption('At least one of these holds')
    await counted(main, '3 people match')
    await main.getByRole('button', { name: 'Add a group' }).click()
    const group = main.getByRole('group', { name: 'Group of conditions' })
    await group.getByLabel('How the conditions go together').selectOption('None of these holds')
    await group.getByLabel('What is compared').selectOption('Email address')
    await group.getByLabel('How it is compared').selectOption('contains')
    await group.getByLabel('Value').fill('example')
    await counted(main, '3 people match')
    await keepScreenshots(page, 'segment-editor')
    expect(await accessibilityFaults(page)).toEqual([])
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
    await main.getByRole('button', { name: 'Create segment' }).click()

    await page.getByRole('heading', { level: 1, name }).waitFor()
    const { data } = await service.client.succeed(contract.segments.list, { query: {} })
    expect(data[0]).toMatchObject({
      name,
      audienceId,
      conditions: {
        type: 'or',
        conditions: [
          { type: 'property', property: 'plan', operator: 'is', value: 'pro' },
          { type: 'property', property: 'seats', operator: 'at_least', value: 5 },
          { type: 'not', condition: { type: 'field', field: 'email', operator: 'contains', value: 'example' } },
        ],
      },
    })
    await main.getByRole('link', { name: 'Segments' }).click()
    if (viewport === phone) await main.getByRole('button', { name: 'Filters' }).click()
    await main.getByLabel('Audience').selectOption('Readers')
    await main.getByRole('link', { name, exact: true }).waitFor()
    await expect.poll(() => new URL(page.url()).searchParams.get('audience')).toBe(audienceId)
    expect(complaints).toEqual([])
    await context.close()
  })

  test('a segment is opened as it was saved, changed, and deleted when that is confirmed', async () => {
    const { id } = await made('Not basic', {
      type: 'and',
      conditions: [
        { type: 'property', property: 'vip', operator: 'exists', value: false },
        { type: 'not', condition: { type: 'property', property: 'plan', operator: 'is', value: 'basic' } },
        { type: 'not', condition: { type: 'engagement', event: 'opened', inLastDays: 30 } },
      ],
    })
    const { page, main, dialog, context, complaints } = await world.openScreen(`segments/${id}`)
    await counted(main, '1 person matches')
    const save = main.getByRole('button', { name: 'Save' })
    expect(await save.isDisabled()).toBe(true)
    expect(await main.getByLabel('How it is compared').first().inputValue()).toBe('exists_not')
    expect(await main.getByLabel('Days').inputValue()).toBe('30')
    await main.getByLabel('How it is compared').first().selectOption('is')
    expect(await main.getByLabel('Value').first().inputValue()).toBe('true')
    await main.getByRole('button', { name: 'Remove the group' }).last().click()
    await counted(main, '1 person matches')
    await main.getByRole('link', { name: 'ada@example.com' }).waitFor()
    await main.getByRole('button', { name: 'Add a condition' }).last().click()
    await main.getByLabel('What is compared').last().selectOption('Offers')
    await counted(main, '0 people match')
    await main.getByLabel('How it is compared').last().selectOption('is not subscribed to')
    await counted(main, '1 person matches')
    await main.getByLabel('Name').fill('Important')
    await save.click()
    await page.getByRole('heading', { level: 1, name: 'Important' }).waitFor()
    expect(await save.isDisabled()).toBe(true)
    expect(await service.client.succeed(contract.segments.get, { params: { id } })).toMatchObject({
      name: 'Important',
      conditions: {
        type: 'and',
        conditions: [
          { type: 'property', property: 'vip', operator: 'is', value: true },
          { type: 'not', condition: { type: 'property', property: 'plan', operator: 'is', value: 'basic' } },
          { type: 'topic', topicId, subscribed: false },
        ],
      },
    })
    await main.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByRole('button', { name: 'Delete the segment' }).click()
    await page.getByRole('heading', { level: 1, name: 'Segments' }).waitFor()
    await main.getByRole('link', { name: 'Important' }).waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
    await context.close()
  })

  test('what the API refuses stands at the condition that it belongs to', async () => {
    const { client } = service
    await client.succeed(contract.contactProperties.create, { body: { key: 'gone', type: 'string' } })
    const { id } = await made('Gone', {
      type: 'and',
      conditions: [
        { type: 'property', property: 'plan', operator: 'is', value: 'pro' },
        { type: 'property', property: 'gone', operator: 'is', value: 'x' },
      ],
    })
    await client.succeed(contract.contactProperties.delete, { params: { key: 'gone' } })
    const { page, main, context } = await world.openScreen(`segments/${id}`)
    const second = main.locator('.condition').nth(1)
    await second.getByText('the account has no contact property "gone"').waitFor()
    expect(await main.locator('.condition').first().innerText()).not.toContain('no contact property')
    expect(await second.getByLabel('What is compared').getAttribute('aria-invalid')).toBe('true')
    await keepScreenshots(page, 'segment-fault')
    expect(await accessibilityFaults(page)).toEqual([])
    await second.getByLabel('What is compared').selectOption('Added to this audience')
    await second.getByLabel('How it is compared').selectOption('was in the last … days')
    await second.getByLabel('Days').fill('0')
    await second.getByText(/whole number of days/).waitFor()
    await second.getByLabel('Days').fill('7')
    await counted(main, '2 people match')
    await context.close()
  })

  test('a count that would take too long is an estimate, and says so', async () => {
    const { db } = service.database
    const many = await service.client.succeed(contract.audiences.create, { body: { name: 'Many' } })
    // A smaller audience is counted exactly.
    await insertManyContacts(db, { accountId: service.accountId, audienceId: many.id }, 12_000)
    const nameless = { type: 'field', field: 'firstName', operator: 'exists', value: false } as const
    const { id } = await service.client.succeed(contract.segments.create, {
      body: { audienceId: many.id, name: 'Slow', conditions: nameless },
    })
    const { page, context } = await world.open()
    const main = page.getByRole('main')
    const waiting = new Set<string>()
    await db.transaction().execute(async (trx) => {
      await sql`LOCK TABLE subscribers IN ACCESS EXCLUSIVE MODE`.execute(trx)
      await page.goto(`/app/${service.accountId}/live/segments/${id}`)
      // The exact count reaches its time limit, and the estimate waits in turn.
      await vi.waitFor(
        async () => {
          const { rows } = await sql<{ query: string }>`
            SELECT query FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
              AND query LIKE '%SELECT count(*)::int AS %'
          `.execute(db)
          for (const { query } of rows) waiting.add(query)
          expect(waiting.size).toBe(2)
        },
        { timeout: patienceMs },
      )
    })
    await counted(main, /^About 1[0-3],\d{3} people match$/)
    await main.getByText('Estimated from a sample of the contacts.').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await context.close()
  })

  test('an estimate of nobody leaves a way to list the people whom the sample did not have', async () => {
    const { id } = await made('Rare', { type: 'field', field: 'email', operator: 'contains', value: 'grace' })
    const { page, context, complaints } = await world.open()
    const main = page.getByRole('main')
    // What the API returns of a large audience where few match.
    await page.route('**/v1/segments/preview', (route) =>
      route.fulfill({ json: { count: 0, isEstimate: true, contacts: [] } }),
    )
    await page.goto(`/app/${service.accountId}/live/segments/${id}`)
    await counted(main, 'None in the sample')
    await keepScreenshots(page, 'segment-estimate-of-nobody')
    expect(await screenFaults(page)).toEqual([])
    await main.getByRole('button', { name: 'Show all' }).click()
    await main.getByRole('link', { name: 'grace@example.com' }).waitFor()
    expect(complaints).toEqual([])
    await context.close()
  })

  test('the people of a stored segment are listed page by page and saved as a file; of one that is changed, the first are shown', async () => {
    const { id: sixty } = await service.client.succeed(contract.audiences.create, { body: { name: 'Sixty' } })
    await insertManyContacts(service.database.db, { accountId: service.accountId, audienceId: sixty }, 60)
    const conditions = { type: 'field', field: 'email', operator: 'contains', value: 'example' } as const
    const { id } = await service.client.succeed(contract.segments.create, {
      body: { audienceId: sixty, name: 'All sixty', conditions },
    })
    const { page, main, context, complaints } = await world.openScreen(`segments/${id}`)
    const rows = (table: string) => main.getByRole('table', { name: table }).getByRole('row')
    const [first, people] = [rows('Some of the people'), rows('People of the segment')]
    const exportAll = main.getByRole('button', { name: 'Export' })
    await counted(main, '60 people match')
    expect(await first.count()).toBe(11)
    await main.getByRole('button', { name: 'Show all' }).press('Enter')
    await expect.poll(() => people.count()).toBe(51)
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Who matches')
    await main.getByRole('button', { name: 'Show more' }).click()
    await expect.poll(() => people.count()).toBe(61)
    expect(await main.getByRole('button', { name: 'Show more' }).count()).toBe(0)
    expect(await screenFaults(page)).toEqual([])
    const [file] = await Promise.all([page.waitForEvent('download'), exportAll.click()])
    expect(file.suggestedFilename()).toBe(`segment-${id}.csv`)
    expect((await readFile(await file.path(), 'utf8')).trim().split('\r\n')).toHaveLength(61)

    // A change of the name alone reads none of the pages again.
    let reads = 0
    await page.route(`**/v1/segments/${id}/contacts?*`, async (route) => {
      reads += 1
      await route.continue()
    })
    const error = { code: 'not_found', message: 'Not counted', details: [], requestId: null }
    await page.route('**/v1/segments/preview', (route) => route.fulfill({ status: 404, json: { error } }))
    await main.getByLabel('Name').fill('Every one of the sixty')
    await main.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { level: 1, name: 'Every one of the sixty' }).waitFor()
    // The count of before and the people stay where the next count fails.
    await main.getByRole('alert').getByText('Not counted').waitFor()
    await counted(main, '60 people match')
    expect([await people.count(), reads]).toEqual([61, 0])
    await page.unroute('**/v1/segments/preview')
    await main.getByRole('button', { name: 'Try again' }).click()
    await main.getByRole('alert').waitFor({ state: 'detached' })

    await main.getByLabel('Value').fill('-5')
    await counted(main, '11 people match')
    await main.getByText('Save the segment to list all of them.').waitFor()
    expect([await first.count(), await people.count()]).toEqual([11, 0])
    expect(await exportAll.isDisabled()).toBe(true)
    await main.getByText('Save the segment to export it.').waitFor()
    await keepScreenshots(page, 'segment-changed')
    expect(await screenFaults(page)).toEqual([])
    await main.getByRole('button', { name: 'Save' }).click()
    const held = Promise.withResolvers<void>()
    await page.route(`**/v1/segments/${id}/contacts?*`, async (route) => {
      await held.promise
      await route.continue()
    })
    await main.getByRole('button', { name: 'Show all' }).click()
    await people.first().waitFor()
    // Those of the preview stay until the list is read, and not those of the list of before.
    expect(await people.count()).toBe(11)
    held.resolve()
    await expect.poll(() => people.count()).toBe(12)
    expect(await exportAll.isEnabled()).toBe(true)
    expect(complaints).toEqual([])
    await context.close()
  })

  test('the keyboard alone makes a segment: the focus stays in the editor when a condition is removed', async () => {
    const { page, main, context } = await world.openScreen(`segments/new?audience=${audienceId}`)
    await main.getByLabel('Name').focus()
    await page.keyboard.type('By keyboard')
    await main.getByRole('button', { name: 'Add a condition' }).press('Enter')
    expect(await main.locator('.condition').count()).toBe(2)
    await main.getByRole('button', { name: 'Remove the condition' }).last().press('Enter')
    expect(await main.locator('.condition').count()).toBe(1)
    const focused = await page.evaluate('document.activeElement.textContent')
    expect(focused).toBe('Add a condition')
    await main.getByLabel('Name').press('Enter')
    await page.getByRole('heading', { level: 1, name: 'By keyboard' }).waitFor()
    await context.close()
  })

  test('an account without an audience is led to them', async () => {
    const { db } = service.database
    const { id: accountId } = await db
      .selectFrom('accounts')
      .select('id')
      .where('name', '=', 'Theirs')
      .executeTakeFirstOrThrow()
    const other = await signUp(service, { accountId })
    const { page, context } = await world.open({ person: other })
    await page.goto(`/app/${accountId}/live/segments`)
    await page.getByRole('heading', { name: 'No segments yet' }).waitFor()
    await page.getByRole('main').getByRole('link', { name: 'Create segment' }).first().click()
    await page.getByRole('link', { name: 'To the audiences' }).click()
    await page.getByRole('heading', { level: 1, name: 'Audiences' }).waitFor()
    await context.close()
  })
})
