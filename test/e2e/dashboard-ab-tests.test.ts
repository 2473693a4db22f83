import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, phone, shown } from '../support/dashboard.ts'
import { patienceMs } from '../support/patience.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { createDashboardWorld, type DashboardWorld } from '../support/worlds/dashboard.ts'

const { campaigns } = contract

/** Returns what is said to be wrong with a field, where a screen reader says it too. Null: nothing. */
async function faultOf(field: Locator): Promise<string | null> {
  if ((await field.getAttribute('aria-invalid')) !== 'true') return null
  const ids = (await field.getAttribute('aria-describedby'))?.split(' ') ?? []
  const id = ids.find((one) => one.endsWith('-error'))
  return id === undefined ? null : field.page().locator(`[id="${id}"]`).textContent()
}

describeInBrowser('A/B tests in the dashboard', { timeout: 120_000 }, () => {
  let world: DashboardWorld
  let id: string
  const people = 40

  beforeAll(async () => {
    world = await createDashboardWorld()
    const { client } = world.service
    await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name: 'Readers' } })
    const contacts = Array.from({ length: people }, (_, index) => ({ email: `person-${index}@example.org` }))
    await client.succeed(contract.contacts.addBatch, { params: { audienceId }, body: { contacts } })
    const content = { text: 'Spring is here.', fallbacks: { greeting: 'Hello' } }
    const fields = { audienceId, from: 'hello@shop.test', subject: 'Spring', content }
    ;({ id } = await client.succeed(campaigns.create, { body: { name: 'Spring', ...fields } }))
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  const read = () => world.service.client.succeed(campaigns.get, { params: { id } })

  test('A/B tests in the dashboard are written in the editor, with faults of numbers at the field, and stay when something else is changed', async () => {
    const { page, main, context, complaints } = await world.openScreen(`campaigns/${id}/edit`)
    await main.getByLabel('Try variants of the message first').check()
    const variant = (number: number) => main.getByRole('group', { name: `Variant ${number}` })
    await variant(2).getByLabel('Subject').fill('Spring, at last')
    await main.getByRole('button', { name: 'Add a variant' }).click()
    await variant(3).getByLabel('Subject').fill('Not this one')
    await main.getByRole('button', { name: 'Add a variant' }).click()
    await variant(4).getByLabel('Message').selectOption('Written here')
    await variant(4).getByRole('textbox', { name: 'HTML' }).fill('<p>Another spring.</p>')
    await main.getByRole('button', { name: 'Remove variant 3' }).click()
    await main.getByLabel('Share of the people in the test').fill('0')
    await main.getByRole('button', { name: 'Save' }).click()
    await expect
      .poll(() => faultOf(main.getByLabel('Share of the people in the test')), { timeout: patienceMs })
      .toBe('Must be a number from 1 to 100')
    await main.getByLabel('Share of the people in the test').fill('50')
    await main.getByRole('button', { name: 'Save' }).click()
    await expect
      .poll(() => faultOf(main.getByLabel('The winner has')), { timeout: patienceMs })
      .toBe('Needs trackOpens')
    await main.getByLabel('The winner has').selectOption('I choose it')
    expect(await main.getByLabel('Hours until the winner is chosen').count()).toBe(0)
    await keepScreenshots(page, 'ab-test-editor')
    expect(await accessibilityFaults(page)).toEqual([])
    await main.getByRole('button', { name: 'Save' }).click()
    await main.getByText('Nothing was sent yet').waitFor()
    const own = { preheader: null, html: '<p>Another spring.</p>', mjml: null, text: null, fallbacks: null }
    const stored = {
      share: 50,
      winnerBy: 'manual',
      hours: null,
      variants: [
        { name: 'A', subject: null, content: null, templateId: null },
        { name: 'B', subject: 'Spring, at last', content: null },
        { name: 'D', subject: null, content: own },
      ],
    }
    expect((await read()).abTest).toMatchObject(stored)
    await main.getByLabel('Show', { exact: true }).selectOption('D')
    await page.frameLocator('iframe').getByText('Another spring.').waitFor()
    const ownContent = { html: own.html, fallbacks: { greeting: 'Hi' } }
    const variants = [{ name: 'A' }, { name: 'B', subject: 'Spring, at last' }, { name: 'D', content: ownContent }]
    const abTest = { share: 50, winnerBy: 'manual' as const, variants }
    await world.service.client.succeed(campaigns.update, { params: { id }, body: { abTest } })
    await page.reload()
    await main.getByRole('button', { name: 'Edit' }).click()
    await variant(3).getByText('From its template, where “Values” has none: greeting: "Hi"').waitFor()
    await main.getByLabel('Name').first().fill('Spring news')
    await main.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { level: 1, name: 'Spring news' }).waitFor()
    const saved = await read()
    const changed = { ...own, fallbacks: { greeting: 'Hi' } }
    expect(saved.abTest).toMatchObject({
      ...stored,
      variants: [...stored.variants.slice(0, 2), { name: 'D', subject: null, content: changed }],
    })
    expect(saved.content.fallbacks).toEqual({ greeting: 'Hello' })
    expect(complaints).toEqual([])
    await context.close()
  })

  test('faults of a variant stand at its field, and go when that is changed', async () => {
    const { client } = world.service
    const html = '<p>From the template, {{ season }}.</p>'
    const variables = [{ name: 'season', type: 'string' as const, required: true }]
    const { id: templateId } = await client.succeed(contract.templates.create, {
      body: { name: 'News', subject: 'News', html, variables },
    })
    await client.succeed(contract.templates.publish, { params: { id: templateId }, body: {} })
    const { page, main, context, complaints } = await world.openScreen(`campaigns/${id}/edit`)
    const save = () => main.getByRole('button', { name: 'Save' }).click()
    const variant = (number: number) => main.getByRole('group', { name: `Variant ${number}` })
    await variant(2).getByLabel('Name').fill('A')
    await variant(3).getByRole('textbox', { name: 'HTML' }).fill('')
    await save()
    const name = variant(2).getByLabel('Name')
    const code = variant(3).getByRole('textbox', { name: 'HTML' })
    await expect.poll(() => faultOf(name), { timeout: patienceMs }).toBe('Must not be the name of another variant')
    expect(await faultOf(variant(1).getByLabel('Name'))).toBeNull()
    await name.fill('B')
    expect(await faultOf(name)).toBeNull()
    await save()
    await expect.poll(() => faultOf(code), { timeout: patienceMs }).toBe('Is needed, or text')
    await keepScreenshots(page, 'ab-test-faults')
    expect(await accessibilityFaults(page)).toEqual([])
    // With the first one gone it is the second, and another one.
    await main.getByRole('button', { name: 'Remove variant 1' }).click()
    expect(await main.locator('[aria-invalid="true"]').count()).toBe(0)
    await variant(2).getByLabel('Message').selectOption('A template')
    await save()
    const template = variant(2).getByLabel('Template')
    await expect.poll(() => faultOf(template), { timeout: patienceMs }).toBe('Choose a template')
    await template.selectOption('News')
    await save()
    await expect
      .poll(() => faultOf(main.getByLabel('Values')), { timeout: patienceMs })
      .toBe('Is required, for the template of the variant "D"')
    await main.getByLabel('Values').fill('{ "season": "spring" }')
    await save()
    await main.getByText('Nothing was sent yet').waitFor()
    expect((await read()).abTest?.variants).toMatchObject([{ name: 'B' }, { name: 'D', templateId, content: null }])
    await main.getByLabel('Show', { exact: true }).selectOption('D')
    await page.frameLocator('iframe').getByText('From the template, spring.').waitFor()
    await main.getByRole('button', { name: 'Edit' }).click()
    await expect.poll(() => variant(2).getByLabel('Template').inputValue(), { timeout: patienceMs }).toBe(templateId)
    expect(complaints).toEqual([])
    await context.close()
  })

  test('A/B tests in the dashboard show how the variants do, and the winner is chosen by hand', async () => {
    await world.service.client.succeed(campaigns.send, { params: { id }, body: {} })
    await expect.poll(async () => (await read()).waitingFor, { timeout: patienceMs }).not.toBeNull()
    const { page, main, dialog, context, complaints } = await world.openScreen(`campaigns/${id}`)
    await main.getByText('It waits for you to choose the winner').waitFor()
    const row = (name: string | RegExp) =>
      main.getByRole('table', { name: 'Variants', exact: true }).getByRole('row', { name })
    await row(/^B Spring, at last \d+ \d+/).waitFor()
    await main.getByText('50 % of the people get the variants.').waitFor()
    await keepScreenshots(page, 'ab-test-waiting')
    expect(await accessibilityFaults(page)).toEqual([])
    await main.getByRole('button', { name: 'Choose the winner' }).click()
    await dialog.getByLabel('Winner').selectOption('B: Spring, at last')
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Send B to the rest' }).click()
    await row(/^B, the winner/).waitFor()
    await main.getByText(/^B was chosen at /).waitFor()
    expect(await main.getByRole('button', { name: 'Choose the winner' }).count()).toBe(0)
    await expect.poll(async () => (await read()).status, { timeout: patienceMs }).toBe('completed')
    await main.locator('.subtitle', { hasText: 'Completed' }).waitFor()
    const recipients = main.getByRole('table', { name: 'Recipients', exact: true })
    await recipients.getByRole('columnheader', { name: 'Variant' }).waitFor()
    expect(complaints).toEqual([])
    await context.close()
  })

  test('A/B tests in the dashboard are as wide as a phone, in the dark too', async () => {
    const options = { viewport: phone, colorScheme: 'dark' } as const
    const { page, main, context, complaints } = await world.openScreen(`campaigns/${id}`, options)
    await main.getByText('B, the winner').waitFor()
    await shown(page)
    await keepScreenshots(page, 'ab-test-phone')
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    expect(await accessibilityFaults(page)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  test('A/B tests in the dashboard say of a campaign that was paused for a variant that it can go on with the others', async () => {
    const { client } = world.service
    const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name: 'Many readers' } })
    const contacts = Array.from({ length: 300 }, (_, index) => ({ email: `person-${index}@example.org` }))
    await client.succeed(contract.contacts.addBatch, { params: { audienceId }, body: { contacts } })
    const variants = [{ name: 'Good' }, { name: 'Bad', subject: '{% if contact.firstName == "Nobody" %}Hi{% endif %}' }]
    const abTest = { share: 100, winnerBy: 'manual' as const, variants }
    const fields = { from: 'hello@shop.test', subject: 'Spring', content: { text: 'Spring is here.' } }
    const body = { name: 'Half faulty', audienceId, abTest, ...fields }
    const { id: faulty } = await client.succeed(campaigns.create, { body })
    await client.succeed(campaigns.send, { params: { id: faulty }, body: {} })
    const { main, dialog, context, complaints } = await world.openScreen(`campaigns/${faulty}`)
    await main.locator('.subtitle', { hasText: 'Paused' }).waitFor()
    const note = main.getByRole('note')
    await note.getByText('The content of the variant "Bad" could not be rendered').waitFor()
    expect(await note.innerText()).toContain('Resume the campaign, and it goes on with the others')
    await main.getByRole('button', { name: 'Resume' }).click()
    await dialog.getByRole('button', { name: 'Resume it' }).click()
    await main.locator('.subtitle', { hasText: 'Completed' }).waitFor()
    expect(complaints).toEqual([])
    await context.close()
  })
})
