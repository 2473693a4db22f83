import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, phone, shown } from '../support/dashboard.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { createDashboardWorld, type DashboardWorld, type OpenedDashboard } from '../support/worlds/dashboard.ts'

describeInBrowser('topics and the brand in the dashboard', { timeout: 90_000 }, () => {
  let world: DashboardWorld
  let opened: OpenedDashboard
  let page: Page
  let root: string
  let main: Locator
  let dialog: Locator

  beforeAll(async () => {
    world = await createDashboardWorld()
    ;({ root } = world)
    opened = await world.open()
    ;({ page, main, dialog } = opened)
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  const topics = async () => (await world.service.client.succeed(contract.topics.list, { query: {} })).data

  test('a topic is created, edited, and deleted by its name', async () => {
    await page.goto(`${root}/topics`)
    await page.getByRole('heading', { name: 'No topics yet' }).waitFor()
    await keepScreenshots(page, 'empty-topics')
    expect(await accessibilityFaults(page)).toEqual([])
    await main.getByRole('button', { name: 'Create topic' }).first().click()
    await dialog.getByLabel('Name').fill('Offers')
    await dialog.getByLabel('People who have chosen nothing').selectOption('opt_in')
    await dialog.getByRole('button', { name: 'Create topic' }).click()
    await main.getByText('Who has joined').waitFor()
    await main.getByRole('button', { name: 'Actions for Offers' }).click()
    await page.getByRole('menuitem', { name: 'Edit' }).click()
    await dialog.getByLabel('Description').fill('Twice a year')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await main.getByText('Twice a year').waitFor()
    expect(await topics()).toMatchObject([{ name: 'Offers', description: 'Twice a year', default: 'opt_in' }])
    await main.getByRole('button', { name: 'Actions for Offers' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await dialog.getByText('what people chose is forgotten').waitFor()
    const remove = dialog.getByRole('button', { name: 'Delete the topic' })
    expect(await remove.isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill('Offers')
    await remove.click()
    await page.getByRole('heading', { name: 'No topics yet' }).waitFor()
    expect(await topics()).toEqual([])
  })

  test('a person leaves and joins a topic where they are looked at', async () => {
    const { client } = world.service
    const { id } = await client.succeed(contract.subscribers.create, { body: { email: 'ada@example.org' } })
    await client.succeed(contract.topics.create, { body: { name: 'News', default: 'opt_out' } })
    await page.goto(`${root}/subscribers/${id}`)
    const news = main.getByRole('checkbox', { name: 'News' })
    await main.getByText('Chose nothing, so gets it').waitFor()
    expect(await news.isChecked()).toBe(true)
    await news.click()
    await main.getByText('Left').waitFor()
    const { data } = await client.succeed(contract.topics.listOfSubscriber, { params: { id } })
    expect(data).toMatchObject([{ name: 'News', subscribed: false }])
    await news.click()
    await main.getByText('Joined').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
  })

  test('the brand is changed beside a live look of the page, and saved', async () => {
    const { client } = world.service
    await page.goto(`${root}/settings/brand`)
    const look = main.locator('.preferences-look')
    await look.getByText('News').waitFor()
    await main.getByLabel('Name').fill('Acme & Sons')
    await look.getByText('Acme & Sons').waitFor()
    const colorsOf = () =>
      page.evaluate(
        "(({ backgroundColor, color }) => [backgroundColor, color])(getComputedStyle(document.querySelector('.look-button')))",
      )
    await main.getByLabel('Color of buttons').fill('#ffee00')
    expect(await colorsOf()).toEqual(['rgb(255, 238, 0)', 'rgb(0, 0, 0)'])
    await main.getByLabel('Color of buttons').fill('#00f')
    await main.getByRole('button', { name: 'Save' }).click()
    await main.getByText('Must look like').waitFor()
    expect(await colorsOf()).toEqual(['rgb(34, 34, 34)', 'rgb(255, 255, 255)'])
    await main.getByLabel('Color of buttons').fill('#ffee00')
    await main.getByRole('button', { name: 'Save' }).click()
    await page.getByText('The brand was saved.').waitFor()
    expect(await client.succeed(contract.brands.get, {})).toEqual({
      name: 'Acme & Sons',
      accentColor: '#ffee00',
      text: null,
    })
  })

  test('the screens of topics are as wide as a phone, in the dark and in test mode, and the brand is read only', async () => {
    const small = await world.open({ viewport: phone, colorScheme: 'dark' })
    for (const path of ['topics', 'settings/brand']) {
      await small.page.goto(`${root.replace(/live$/, 'test')}/${path}`)
      await shown(small.page)
      expect(await accessibilityFaults(small.page), path).toEqual([])
      expect(await small.page.evaluate('document.documentElement.scrollWidth'), path).toBe(phone.width)
    }
    await small.main.getByText('It is changed in live mode').waitFor()
    expect(await small.main.getByRole('button', { name: 'Save' }).count()).toBe(0)
    expect(small.complaints).toEqual([])
    await small.context.close()
  })

  test('the screens of topics broke no rule of the Content-Security-Policy', () => {
    expect(opened.complaints).toEqual([])
  })
})
