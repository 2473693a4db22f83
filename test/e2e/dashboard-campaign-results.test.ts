import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, phone, shown } from '../support/dashboard.ts'
import { patienceMs } from '../support/patience.ts'
import { signUp } from '../support/people.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { createDashboardWorld, type DashboardWorld } from '../support/worlds/dashboard.ts'

const { campaigns } = contract

describeInBrowser('the results of a campaign in the dashboard', { timeout: 120_000 }, () => {
  let world: DashboardWorld
  let id: string

  beforeAll(async () => {
    world = await createDashboardWorld()
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  /** Sends two campaigns, of which the second is looked at. */
  async function send(): Promise<void> {
    const { client } = world.service
    await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name: 'Readers' } })
    const contacts = ['clicked', 'opened', 'bounced'].map((name) => ({ email: `${name}@simulator.test` }))
    await client.succeed(contract.contacts.addBatch, { params: { audienceId }, body: { contacts } })
    const html = '<h1>For {{ contact.firstName | default: "all" }}</h1> <a href="https://example.com/">Shop</a>'
    const fields = { audienceId, from: 'hello@shop.test', subject: 'Spring', content: { html } }
    for (const name of ['Before', 'Spring']) {
      const body = { ...fields, name, trackOpens: true, trackClicks: true }
      ;({ id } = await client.succeed(campaigns.create, { body }))
      const params = { id }
      await client.succeed(campaigns.send, { params, body: {} })
      const counts = async () => (await client.succeed(campaigns.statistics, { params })).emails
      await expect.poll(counts, { timeout: patienceMs }).toMatchObject({ clicked: 1, opened: 2, bounced: 1 })
    }
  }

  test('the results of a campaign in the dashboard are shown over time, by link and provider, beside others, exported, and as a page for everybody', async () => {
    await send()
    const { page, main, context, complaints } = await world.openScreen(`campaigns/${id}`)
    const row = (table: string, name: string | RegExp) =>
      main.getByRole('table', { name: table }).getByRole('row', { name })
    await row('Links', 'https://example.com/ 1 1').waitFor()
    await row('Mailbox providers', /^simulator\.test 2 1/).waitFor()
    await row('Beside the last ones', /^Spring 2 100 % 50 % 33.3 % 0 %/).waitFor()
    await row('Beside the last ones', 'Before').getByRole('link').waitFor()
    await main.getByText('Recipients, by hour as a table').waitFor()
    const exportButton = main.getByRole('button', { name: 'Export' })
    const [file] = await Promise.all([page.waitForEvent('download'), exportButton.click()])
    expect(await readFile(await file.path(), 'utf8')).toMatch(/^email,.*\r\n(.*\r\n)*clicked@simulator\.test/)

    await main.getByLabel('A page for everybody').click()
    const copy = main.getByRole('button', { name: /^Copy the link to the page/ })
    await copy.waitFor()
    const { archiveUrl } = await world.service.client.succeed(campaigns.get, { params: { id } })
    expect(await copy.innerText()).toBe(archiveUrl)
    await keepScreenshots(page, 'campaign-results')
    expect(await accessibilityFaults(page)).toEqual([])
    const reader = await context.newPage()
    await reader.goto(archiveUrl ?? '')
    await reader.getByRole('heading', { name: 'For all' }).waitFor()
    // In the sandbox it is an origin of its own, and reads nothing of the session.
    expect(await reader.evaluate('origin')).toBe('null')
    expect(complaints).toEqual([])
    await context.close()
  })

  test('the results of a campaign in the dashboard are as wide as a phone, in the dark too', async () => {
    const { page, main, context, complaints } = await world.openScreen(`campaigns/${id}`, {
      viewport: phone,
      colorScheme: 'dark',
    })
    await main.getByRole('table', { name: 'Beside the last ones' }).waitFor()
    await shown(page)
    await keepScreenshots(page, 'campaign-results-phone')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    expect(await accessibilityFaults(page)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  test('the results of a campaign outside of its hours say when it goes on', async () => {
    const { client } = world.service
    const hour = (ahead: number) => `${new Date(Date.now() + ahead * 3_600_000).toISOString().slice(11, 13)}:00`
    const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name: 'Later' } })
    const params = { audienceId }
    await client.succeed(contract.contacts.add, { params, body: { email: 'delivered@simulator.test' } })
    const sendWindow = { from: hour(2), to: hour(3), timezone: 'UTC' }
    const content = { text: 'Spring is here.' }
    const body = { name: 'Later', audienceId, from: 'hello@shop.test', subject: 'Spring', content, sendWindow }
    const later = await client.succeed(campaigns.create, { body })
    await client.succeed(campaigns.send, { params: { id: later.id }, body: {} })
    const { main, context, complaints } = await world.openScreen(`campaigns/${later.id}`)
    await main.getByText('It is outside of the hours in which it sends').waitFor()
    await main.getByText(`${sendWindow.from} to ${sendWindow.to} in UTC`).waitFor()
    expect(complaints).toEqual([])
    await context.close()
  })

  test('the results of a campaign at local times say when that is, and for whom', async () => {
    const { client } = world.service
    const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name: 'All over' } })
    const content = { text: 'Good morning.' }
    const body = { name: 'Morning', audienceId, from: 'hello@shop.test', subject: 'Morning', content }
    const { id: morning } = await client.succeed(campaigns.create, { body })
    const day = new Date(Date.now() + 3 * 86_400_000).toISOString().slice(0, 10)
    const { main, dialog, context, complaints } = await world.openScreen(`campaigns/${morning}`)
    await main.getByRole('button', { name: 'Send it' }).click()
    await dialog.getByLabel('At each person’s local time').click()
    await dialog.getByLabel('Local time', { exact: true }).fill(`${day}T09:00`)
    await dialog.getByLabel('Zone of the others').fill('Asia/Tokyo')
    await dialog.getByRole('button', { name: 'Schedule it' }).click()
    await dialog.getByText('Needs the contact property "timezone"').waitFor()
    await client.succeed(contract.contactProperties.create, { body: { key: 'timezone', type: 'string' } })
    await dialog.getByRole('button', { name: 'Schedule it' }).click()
    await main.getByText(new RegExp(`${day} 09:00.*, for others as in Asia/Tokyo`)).waitFor()
    expect(complaints).toEqual([])
    await context.close()
  })

  test('a viewer sees what was sent, and is told why nothing can be written', async () => {
    const { root, service } = world
    const viewer = await signUp(service, { role: 'viewer' })
    const { page: theirs, context, complaints } = await world.open({ person: viewer })
    await theirs.goto(`${root}/campaigns/${id}`)
    await theirs.getByRole('heading', { level: 1, name: 'Spring' }).waitFor()
    await shown(theirs)
    const buttons = theirs.getByRole('main').getByRole('button')
    for (const name of ['Send it', 'Edit', 'More'])
      expect(await buttons.filter({ hasText: name }).count(), name).toBe(0)
    await theirs.goto(`${root}/campaigns/new`)
    await theirs.getByRole('heading', { name: 'Your role does not allow this' }).waitFor()
    await theirs.goto(`${root}/campaigns/${id}/edit`)
    await theirs.getByRole('heading', { name: 'It cannot be changed' }).waitFor()
    expect(await accessibilityFaults(theirs)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })
})
