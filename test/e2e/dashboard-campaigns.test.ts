import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, phone, shown } from '../support/dashboard.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import type { TestService } from '../support/service.ts'
import { createDashboardWorld, type DashboardWorld, type OpenedDashboard } from '../support/worlds/dashboard.ts'

describeInBrowser('campaigns in the dashboard', { timeout: 120_000 }, () => {
  let world: DashboardWorld
  let service: TestService
  let opened: OpenedDashboard
  let page: Page
  let root: string
  let main: Locator
  let dialog: Locator

  beforeAll(async () => {
    world = await createDashboardWorld()
    ;({ service, root } = world)
    opened = await world.open()
    ;({ page, main, dialog } = opened)
    await service.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  const { campaigns } = contract
  const read = (id: string) => service.client.succeed(campaigns.get, { params: { id } })
  const idShown = () => new URL(page.url()).pathname.split('/').at(-1) ?? ''
  const state = (word: string) => main.locator('.subtitle', { hasText: word }).waitFor()

  /** Adds an audience with as many active people. */
  async function addAudience(people: number): Promise<string> {
    const { client } = service
    const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name: `Of ${people}` } })
    const contacts = Array.from({ length: people }, (_, index) => ({ email: `person-${index}@example.org` }))
    await client.succeed(contract.contacts.addBatch, { params: { audienceId }, body: { contacts } })
    return audienceId
  }

  async function draft(fields: object = {}, people = 3): Promise<string> {
    const audienceId = await addAudience(people)
    const content = { html: '<p>Spring is here. <a href="{{ unsubscribeUrl }}">Unsubscribe</a></p>' }
    const body = { name: 'Spring', audienceId, from: 'hello@shop.test', subject: 'Spring is here', content, ...fields }
    return (await service.client.succeed(campaigns.create, { body })).id
  }

  async function choose(item: string): Promise<void> {
    await main.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: item, exact: true }).click()
  }

  test('a campaign is made in an empty account and sent, and its email is captured', async () => {
    await page.goto(`${root}/campaigns`)
    await page.getByRole('heading', { name: 'No campaigns in live mode yet' }).waitFor()
    await main.getByRole('button', { name: 'Create campaign' }).first().click()
    await main.getByText('There is no audience yet').waitFor()
    await main.getByRole('link', { name: 'Create one' }).click()
    await main.getByRole('button', { name: 'Create audience' }).first().click()
    await dialog.getByLabel('Name').fill('Readers')
    await dialog.getByRole('button', { name: 'Create audience' }).click()
    await main.getByRole('button', { name: 'Add contact' }).click()
    await dialog.getByLabel('Email').fill('ada@example.org')
    await dialog.getByLabel('First name').fill('Ada')
    await dialog.getByRole('button', { name: 'Add contact' }).click()
    await main.getByRole('link', { name: 'ada@example.org' }).waitFor()

    await page.getByRole('link', { name: 'Campaigns', exact: true }).click()
    await main.getByRole('button', { name: 'Create campaign' }).first().click()
    await main.getByRole('button', { name: 'Create draft' }).click()
    await main.getByLabel('Name').fill('First news')
    await main.getByLabel('From').fill('hello@shop.test')
    await main.getByLabel('Subject').fill('News for {{ contact.firstName }}')
    await main.getByRole('button', { name: 'Create draft' }).click()
    await main.getByText('Choose an audience').waitFor()
    await main.getByLabel('Audience').selectOption('Readers')
    await main.getByLabel('Reply to').fill('help@shop.test\nno address')
    await main.getByRole('button', { name: 'Create draft' }).click()
    await main.getByText('Must be an address such as').waitFor()
    await main.getByLabel('Reply to').fill('help@shop.test\nsales@shop.test')
    await main.getByLabel('Track opens').check()
    await main.getByLabel('Messages an hour').fill('1000')
    await main.getByLabel('Tags').fill('news\nspring')
    await page.frameLocator('iframe').getByText('Write your message here.').waitFor()
    await keepScreenshots(page, 'campaign-editor-filled')
    await main.getByRole('button', { name: 'Create draft' }).click()
    await page.getByRole('heading', { level: 1, name: 'First news' }).waitFor()
    await main.getByText('Nothing was sent yet').waitFor()
    const id = idShown()
    expect(await read(id)).toMatchObject({
      status: 'draft',
      replyTo: ['help@shop.test', 'sales@shop.test'],
      trackOpens: true,
      trackClicks: false,
      throttle: 1000,
      tags: ['news', 'spring'],
      content: { preheader: null, text: null },
    })

    await main.getByRole('button', { name: 'Send it' }).click()
    await dialog.getByText('Readers').waitFor()
    await dialog.getByRole('button', { name: 'Send it now' }).click()
    await state('Completed')
    await main.getByText('1 of 1 email was handed over.').waitFor()
    const recipients = main.getByRole('table', { name: 'Recipients', exact: true })
    await recipients.getByRole('link', { name: 'ada@example.org' }).waitFor()
    await main.getByRole('heading', { name: 'Results' }).waitFor()
    expect(await main.locator('.tiles > div').first().innerText()).toContain('1')
    await keepScreenshots(page, 'campaign-completed')
    expect(await accessibilityFaults(page)).toEqual([])

    await recipients.getByRole('cell').getByRole('link').nth(1).click()
    await page.getByRole('heading', { level: 1, name: 'News for Ada' }).waitFor()
    await main.getByRole('link', { name: 'What would have been sent' }).click()
    await main.getByRole('cell', { name: 'News for Ada' }).waitFor()
  })

  test('a draft is edited, and what is not saved is not left without a word', async () => {
    const id = await draft({ name: 'To be changed', metadata: { team: 'shop' }, throttle: 5 })
    await page.goto(`${root}/campaigns/${id}`)
    await main.getByRole('button', { name: 'Edit', exact: true }).click()
    await main.getByLabel('Name').fill('Changed')
    await main.getByLabel('Messages an hour').fill('many')
    await main.getByRole('button', { name: 'Save' }).click()
    await main.getByText('Must be a number of messages').waitFor()
    await main.getByLabel('Messages an hour').fill('')
    await page.getByRole('link', { name: 'Emails', exact: true }).click()
    await dialog.getByText('The changes of the campaign were not saved').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await main.getByRole('textbox', { name: 'HTML' }).fill('')
    await main.getByRole('button', { name: 'Save' }).click()
    await main.locator('.code-field[data-bad="true"]').waitFor()
    await main.getByRole('textbox', { name: 'HTML' }).fill('<p>Other</p>')
    await main.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { level: 1, name: 'Changed' }).waitFor()
    expect(await read(id)).toMatchObject({
      name: 'Changed',
      throttle: null,
      metadata: { team: 'shop' },
      content: { html: '<p>Other</p>' },
    })
  })

  test('what is not saved is shown for a person who is searched for, with faults by line', async () => {
    const person = { email: 'zoe@example.org', firstName: 'Zoe <b>' }
    await service.client.succeed(contract.subscribers.create, { body: person })
    const id = await draft()
    await page.goto(`${root}/campaigns/${id}/edit`)
    const html = main.getByRole('textbox', { name: 'HTML', exact: true })
    await html.fill('<p>Dear {{ contact.firstName }},\n{{ unsubscribeUrl | nope }}</p>')
    await main.getByRole('button', { name: 'Line 2' }).click()
    await html.fill('<p>Dear {{ contact.firstName }}, {{ unsubscribeUrl }}</p>')
    const preview = page.frameLocator('iframe')
    await preview.getByText('Dear Ada, https://example.com/unsubscribe').waitFor()
    await main.getByRole('combobox', { name: 'Show it for' }).fill('zoe')
    await page.getByRole('option', { name: 'zoe@example.org' }).click()
    await preview.getByText('Dear Zoe <b>,').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await main.getByText('MJML', { exact: true }).click()
    await dialog.getByRole('button', { name: 'Replace it' }).click()
    await preview.getByText('Write your message here.').waitFor()
    await main.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { level: 1, name: 'Spring' }).waitFor()
    expect((await read(id)).content).toMatchObject({
      mjml: expect.stringContaining('<mj-body'),
      html: expect.stringContaining('Write your message here.'),
    })
  })

  test('the message of a template goes to the segments of an audience that were chosen', async () => {
    const { client } = service
    const audienceId = await addAudience(3)
    const { id: segmentId } = await client.succeed(contract.segments.create, {
      body: {
        audienceId,
        name: 'First ones',
        conditions: { type: 'field', field: 'email', operator: 'starts_with', value: 'person-0' },
      },
    })
    const template = await client.succeed(contract.templates.create, {
      body: {
        name: 'Season',
        subject: '{{ season }} is here',
        html: '<h1>{{ season }}</h1><p>Dear {{ contact.firstName }}</p><a href="{{ unsubscribeUrl }}">Leave</a>',
        variables: [{ name: 'season', type: 'string', required: true }],
      },
    })
    await client.succeed(contract.templates.create, { body: { name: 'Unpublished', subject: 'x' } })
    await client.succeed(contract.templates.publish, { params: { id: template.id }, body: {} })

    await page.goto(`${root}/campaigns/new`)
    await main.getByLabel('Name').fill('Of a template')
    await main.getByLabel('Audience').selectOption(audienceId)
    await main.getByLabel('First ones').check()
    await main.getByLabel('From').fill('hello@shop.test')
    await main.getByLabel('Message', { exact: true }).getByText('Use a template').click()
    await main.getByRole('button', { name: 'Create draft' }).click()
    await main.getByText('Choose a template', { exact: true }).waitFor()
    const option = main.getByRole('option', { name: 'Unpublished (not published)' })
    expect(await option.isDisabled()).toBe(true)
    await main.getByLabel('Template', { exact: true }).selectOption('Season')
    await page.frameLocator('iframe').getByText('Dear Ada').waitFor()
    await main.getByLabel('Values').fill('{ "season": ')
    await main.getByRole('button', { name: 'Create draft' }).click()
    await main.getByText('Must be an object in JSON').waitFor()
    await main.getByLabel('Values').fill('{ "season": "Summer" }')
    await page.frameLocator('iframe').getByRole('heading', { name: 'Summer' }).waitFor()
    await keepScreenshots(page, 'campaign-of-a-template')
    expect(await accessibilityFaults(page)).toEqual([])
    await main.getByRole('button', { name: 'Create draft' }).click()
    await page.getByRole('heading', { level: 1, name: 'Of a template' }).waitFor()
    await main.getByText('the version that is published when it is sent').waitFor()
    await page.frameLocator('iframe').getByRole('heading', { name: 'Summer' }).waitFor()
    const id = idShown()
    const expected = { templateId: template.id, segmentIds: [segmentId], variables: { season: 'Summer' } }
    expect(await read(id)).toMatchObject({ ...expected, subject: '{{ season }} is here' })

    // A change of the name alone leaves the subject that of the template.
    await main.getByRole('button', { name: 'Edit', exact: true }).click()
    await main.getByLabel('Name').fill('Still of a template')
    await main.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { level: 1, name: 'Still of a template' }).waitFor()
    expect(await read(id)).toMatchObject(expected)
    await client.succeed(contract.templates.update, {
      params: { id: template.id },
      body: { subject: 'Now: {{ season }}' },
    })
    await client.succeed(contract.templates.publish, { params: { id: template.id }, body: {} })

    await main.getByRole('button', { name: 'Send it' }).click()
    await dialog.getByText('and in the segment chosen').waitFor()
    await dialog.getByRole('button', { name: 'Send it now' }).click()
    await state('Completed')
    await main.getByText('1 of 1 email was handed over.').waitFor()
    await main.getByText('Season, version 2').waitFor()
    const { data } = await client.succeed(contract.emails.list, { query: { campaign: id } })
    expect(data).toMatchObject([{ subject: 'Now: Summer', to: ['person-0@example.org'] }])
  })

  test('a test goes to given addresses, and leads to what became of each', async () => {
    await page.goto(`${root}/campaigns/${await draft({ subject: 'Spring is here, {{ contact.email }}' })}`)
    await choose('Send a test')
    await dialog.getByLabel('To').fill('nobody')
    await dialog.getByRole('button', { name: 'Send the test' }).click()
    await dialog.getByText('Must be an address such as').waitFor()
    await dialog.getByLabel('To').fill('one@example.org\ntwo@example.org')
    await dialog.getByRole('combobox', { name: 'As for' }).fill('person-2')
    await page.getByRole('option', { name: 'person-2@example.org' }).click()
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Send the test' }).click()
    await dialog.getByRole('link', { name: 'one@example.org' }).waitFor()
    await dialog.getByRole('link', { name: 'two@example.org' }).click()
    await page.getByRole('heading', { level: 1, name: 'Spring is here, person-2' }).waitFor()
    await main.getByRole('cell', { name: 'two@example.org' }).waitFor()
    const { data } = await service.client.succeed(contract.emails.list, { query: { limit: 2 } })
    expect(data.map(({ subject }) => subject)).toEqual(Array(2).fill('Spring is here, person-2@example.org'))
  })

  test('a campaign that is sending shows its progress, is paused, resumed and canceled by its name', async () => {
    const id = await draft({ name: 'Slow', throttle: 1 })
    await page.goto(`${root}/campaigns/${id}`)
    await main.getByRole('button', { name: 'Send it' }).click()
    await dialog.getByRole('button', { name: 'Send it now' }).click()
    await state('Sending')
    await main.getByText('1 of 3 emails were handed over (33 % done).').waitFor()
    await main.getByRole('progressbar', { name: 'Recipients handled' }).waitFor()
    await page.goto(`${root}/campaigns`)
    await main.getByRole('row', { name: /Slow/ }).getByText('33 %').waitFor()
    await keepScreenshots(page, 'campaigns-sending')
    await page.goto(`${root}/campaigns/${id}`)

    await main.getByRole('button', { name: 'Pause' }).click()
    await dialog.getByRole('button', { name: 'Pause it' }).click()
    await state('Paused')
    expect((await read(id)).status).toBe('paused')
    await keepScreenshots(page, 'campaign-paused')
    await main.getByRole('button', { name: 'Resume' }).click()
    await dialog.getByRole('button', { name: 'Resume it' }).click()
    await state('Sending')
    expect((await read(id)).status).toBe('sending')

    await choose('Cancel the campaign')
    const cancel = dialog.getByRole('button', { name: 'Cancel the campaign' })
    expect(await cancel.isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill('Slow')
    await cancel.click()
    await state('Canceled')
    await main.getByLabel('State', { exact: true }).selectOption('Canceled')
    const recipients = main.getByRole('table', { name: 'Recipients', exact: true })
    await recipients.getByRole('row').nth(3).waitFor({ state: 'detached' })
    expect(new URL(page.url()).searchParams.get('recipient')).toBe('canceled')
    expect(await recipients.getByRole('row').count()).toBe(3)
    await main.getByLabel('State', { exact: true }).selectOption('Failed')
    await page.getByRole('heading', { name: 'No recipient is in this state' }).waitFor()
  })

  test('a campaign that the service has paused says why and what to do next', async () => {
    const subject = '{% if contact.firstName == "Nobody" %}Spring{% endif %}'
    const id = await draft({ name: 'Faulty', subject }, 100)
    await service.client.succeed(campaigns.send, { params: { id }, body: {} })
    await page.goto(`${root}/campaigns/${id}`)
    await state('Paused')
    const note = main.getByRole('note')
    await note.getByText('could not be rendered for any of the first 100 people').waitFor()
    expect(await note.innerText()).toContain('duplicate it, mend the content')
    const box = await note.boundingBox()
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(450)
    await keepScreenshots(page, 'campaign-paused-by-service')
    expect(await accessibilityFaults(page)).toEqual([])

    await main.getByRole('button', { name: 'Duplicate' }).click()
    await dialog.getByRole('button', { name: 'Make a draft of it' }).click()
    await state('Draft')
    expect(idShown()).not.toBe(id)
    expect(await read(idShown())).toMatchObject({ status: 'draft', subject })
  })

  test('a campaign is scheduled at a time of the reader, listed by its state, and deleted by its name when it has ended', async () => {
    const id = await draft({ name: 'Later' })
    await page.goto(`${root}/campaigns/${id}`)
    await main.getByRole('button', { name: 'Send it' }).click()
    await dialog.getByLabel('At a time').check()
    await dialog.getByLabel('Time', { exact: true }).fill('2020-01-01T09:30')
    await dialog.getByRole('button', { name: 'Schedule it' }).click()
    await dialog.getByText('Must be in the future').waitFor()
    const tomorrow = new Date(Date.now() + 86_400_000)
    tomorrow.setSeconds(0, 0)
    const local = new Date(tomorrow.getTime() - tomorrow.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
    await dialog.getByLabel('Time', { exact: true }).fill(local)
    await dialog.getByRole('button', { name: 'Schedule it' }).click()
    await state('Scheduled')
    expect((await read(id)).scheduledAt).toBe(tomorrow.toISOString())
    await main.getByRole('note').getByText('It starts').waitFor()

    await page.goto(`${root}/campaigns?status=scheduled`)
    await main.getByRole('link', { name: 'Later' }).waitFor()
    expect(await main.getByRole('row').count()).toBe(2)
    await main.getByLabel('State').selectOption('Canceled')
    await main.getByRole('link', { name: 'Slow' }).waitFor()
    expect(new URL(page.url()).searchParams.get('status')).toBe('canceled')
    expect(await main.getByRole('link', { name: 'Later' }).count()).toBe(0)

    await service.client.succeed(campaigns.cancel, { params: { id }, body: {} })
    await page.goto(`${root}/campaigns/${id}`)
    await choose('Delete')
    await dialog.getByRole('textbox').fill('Later')
    await dialog.getByRole('button', { name: 'Delete the campaign' }).click()
    await page.getByRole('heading', { level: 1, name: 'Campaigns' }).waitFor()
    await page.goto(`${root}/campaigns/${id}`)
    await page.getByRole('heading', { name: 'There is no such campaign' }).waitFor()
  })

  test('a campaign of test mode sends to nobody and says so', async () => {
    await page.goto(`/app/${service.accountId}/test/campaigns`)
    await page.getByRole('heading', { name: 'No campaigns in test mode yet' }).waitFor()
    await main.getByRole('button', { name: 'Create campaign' }).first().click()
    await main.getByLabel('Name').fill('Tried')
    await main.getByLabel('Audience').selectOption('Readers')
    await main.getByLabel('From').fill('hello@shop.test')
    await main.getByLabel('Subject').fill('Tried')
    await main.getByRole('button', { name: 'Create draft' }).click()
    await main.getByRole('button', { name: 'Send it' }).click()
    await dialog.getByText('In test mode nothing leaves').waitFor()
    await dialog.getByRole('button', { name: 'Send it now' }).click()
    await state('Completed')
    await main.getByRole('table', { name: 'Recipients', exact: true }).getByText('Validated').waitFor()
  })

  test('the screen of a campaign is as wide as a phone, in its form too', async () => {
    const { page: small, context, complaints } = await world.open({ viewport: phone, colorScheme: 'dark' })
    const id = await draft({ name: 'x'.repeat(200), subject: 'y'.repeat(500), tags: ['z'.repeat(64)] })
    for (const screen of ['campaigns', `campaigns/${id}`, `campaigns/${id}/edit`]) {
      await small.goto(`${root}/${screen}`)
      await shown(small)
      await keepScreenshots(small, `long-${screen}`)
      expect(await small.evaluate('document.documentElement.scrollWidth'), screen).toBe(phone.width)
      expect(await accessibilityFaults(small), screen).toEqual([])
    }
    expect(complaints).toEqual([])
    await context.close()
  })

  test('the screens of campaigns broke no rule of the Content-Security-Policy, and asked no other server', () => {
    expect(opened.complaints).toEqual([])
  })
})
