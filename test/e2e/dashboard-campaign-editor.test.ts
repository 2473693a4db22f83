import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, phone } from '../support/dashboard.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import type { TestService } from '../support/service.ts'
import { createDashboardWorld, type DashboardWorld, type OpenedDashboard } from '../support/worlds/dashboard.ts'

describeInBrowser('the editor of a campaign, and its start', { timeout: 120_000 }, () => {
  let world: DashboardWorld
  let service: TestService
  let opened: OpenedDashboard
  let page: Page
  let main: Locator

  beforeAll(async () => {
    world = await createDashboardWorld()
    ;({ service } = world)
    opened = await world.open()
    ;({ page, main } = opened)
    await service.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  async function draft(): Promise<string> {
    const { client } = service
    const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name: 'Readers' } })
    const content = { html: '<p>Spring is here. <a href="{{ unsubscribeUrl }}">Unsubscribe</a></p>' }
    const body = { name: 'Spring', audienceId, from: 'hello@shop.test', subject: 'Spring is here', content }
    return (await client.succeed(contract.campaigns.create, { body })).id
  }
  const read = (id: string) => service.client.succeed(contract.campaigns.get, { params: { id } })
  const save = () => main.getByRole('button', { name: 'Save' }).click()

  test('the hours and days in which it sends are chosen, what is wrong with them is said, and they are taken back', async () => {
    const id = await draft()
    await page.goto(`${world.root}/campaigns/${id}/edit`)
    await main.getByLabel('Messages an hour').fill('500')
    await main.getByLabel('Only at some hours of the day').check()
    await main.getByLabel('Sends from').fill('22:00')
    await main.getByLabel('Sends to').fill('22:00')
    await main.getByLabel('Zone of these hours').fill('Europe/Nowhere')
    await save()
    await main.getByRole('alert').getByText('Must not be the same as from').waitFor()
    await main.getByLabel('Sends to').fill('06:30')
    await save()
    await main.getByRole('alert').getByText('Must be an IANA time zone').waitFor()
    await main.getByLabel('Zone of these hours').fill('Europe/Berlin')
    await main.getByLabel('Saturday').check()
    await main.getByLabel('Sunday').check()
    expect(await accessibilityFaults(page)).toEqual([])
    await keepScreenshots(page, 'campaign-hours')
    await save()
    await page.getByRole('heading', { level: 1, name: 'Spring' }).waitFor()
    await main.getByText('22:00 to 06:30 in Europe/Berlin, on Saturday and Sunday').waitFor()
    const sendWindow = { from: '22:00', to: '06:30', timezone: 'Europe/Berlin', days: ['saturday', 'sunday'] }
    expect(await read(id)).toMatchObject({ throttle: 500, sendWindow })

    await main.getByRole('button', { name: 'Edit', exact: true }).click()
    await main.getByLabel('Sends from').waitFor()
    expect(await main.getByLabel('Sends from').inputValue()).toBe('22:00')
    expect(await main.getByLabel('Sunday').isChecked()).toBe(true)
    await main.getByLabel('Only at some hours of the day').uncheck()
    await save()
    await page.getByRole('heading', { level: 1, name: 'Spring' }).waitFor()
    expect(await read(id)).toMatchObject({ throttle: 500, sendWindow: null })
  })

  test('the hours fit on a phone', async () => {
    const {
      page: small,
      main: form,
      context,
    } = await world.openScreen(`campaigns/${await draft()}/edit`, {
      viewport: phone,
    })
    await form.getByLabel('Only at some hours of the day').check()
    await form.getByLabel('Zone of these hours').waitFor()
    expect(await small.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    await context.close()
  })

  test('the message of a chosen person is shown as wide as a phone, by its own rules for narrow screens', async () => {
    const person = { email: 'zoe@example.org', firstName: 'Zoe <b>' }
    await service.client.succeed(contract.subscribers.create, { body: person })
    await page.goto(`${world.root}/campaigns/${await draft()}/edit`)
    const preview = page.frameLocator('iframe')
    const style = '<style>.wide { display: none } @media (min-width: 395px) { .wide { display: block } }</style>'
    await main
      .getByRole('textbox', { name: 'HTML', exact: true })
      .fill(`${style}<p class="wide">Wide</p><p>To {{ contact.firstName }}, {{ unsubscribeUrl }}</p>`)
    await main.getByRole('combobox', { name: 'Show it for' }).fill('zoe')
    await page.getByRole('option', { name: 'zoe@example.org' }).click()
    await preview.getByText('To Zoe <b>,').waitFor()
    await preview.getByText('Wide', { exact: true }).waitFor()
    await main.getByLabel('Preview as').getByText('Phone').click()
    await preview.getByText('Wide', { exact: true }).waitFor({ state: 'hidden' })
    await preview.getByText('To Zoe <b>,').waitFor()
    expect((await page.locator('iframe').boundingBox())?.width).toBe(390)
    await keepScreenshots(page, 'campaign-preview-on-a-phone')
    expect(await accessibilityFaults(page)).toEqual([])
    await main.getByLabel('Preview as').getByText('Desktop').click()
    await preview.getByText('Wide', { exact: true }).waitFor()
    expect(opened.complaints).toEqual([])
  })

  test('a time is that of the reader in a zone half an hour off, and so is what is shown of it', async () => {
    const id = await draft()
    const reader = await world.openScreen(`campaigns/${id}`, { timezoneId: 'Asia/Kolkata' })
    await reader.main.getByRole('button', { name: 'Send it' }).click()
    await reader.dialog.getByLabel('At a time').check()
    await reader.dialog.getByText(/^In your time zone, Asia\/(Calcutta|Kolkata): .* GMT\+5:30\.$/).waitFor()
    const day = new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 10)
    await reader.dialog.getByLabel('Time', { exact: true }).fill(`${day}T09:30`)
    await reader.dialog.getByRole('button', { name: 'Schedule it' }).click()
    const time = reader.main.getByRole('note').locator('time')
    await time.first().waitFor()
    expect((await read(id)).scheduledAt).toBe(`${day}T04:00:00.000Z`)
    expect(await time.first().getAttribute('title')).toMatch(/9:30:00.*GMT\+5:30/)
    await service.client.succeed(contract.campaigns.cancel, { params: { id }, body: {} })
    await reader.context.close()
  })
})
