import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, desktop, phone } from '../support/dashboard.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import type { TestService } from '../support/service.ts'
import { createDashboardWorld, type DashboardWorld } from '../support/worlds/dashboard.ts'

describeInBrowser('contact properties in the dashboard', { timeout: 90_000 }, () => {
  let world: DashboardWorld
  let service: TestService
  let subscriberId: string

  beforeAll(async () => {
    world = await createDashboardWorld()
    service = world.service
    const { client } = service
    subscriberId = (await client.succeed(contract.subscribers.create, { body: { email: 'ada@example.com' } })).id
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  const declared = async () => (await service.client.succeed(contract.contactProperties.list, {})).data
  const valuesOf = async () =>
    (await service.client.succeed(contract.subscribers.get, { params: { id: subscriberId } })).properties

  test('a contact property is declared with its type and fallback, which can be changed, and the key can not', async () => {
    const { page, main, dialog, context, complaints } = await world.openScreen('properties')
    await page.getByRole('heading', { name: 'No properties yet' }).waitFor()
    await main.getByRole('button', { name: 'Declare property' }).first().click()
    await dialog.getByLabel('Key').fill('Big Plan')
    await dialog.getByRole('button', { name: 'Declare property' }).click()
    await dialog.getByText('Must begin with a small letter').waitFor()
    expect(await dialog.getByRole('alert').count()).toBe(0)
    await dialog.getByLabel('Key').fill('plan')
    await dialog.getByLabel('Fallback').fill('free')
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Declare property' }).click()
    await main.getByRole('cell', { name: 'free' }).waitFor()

    for (const [key, type] of [
      ['seats', 'Number'],
      ['vip', 'Yes or no'],
      ['born', 'Date'],
    ] as const) {
      await main.getByRole('button', { name: 'Declare property' }).click()
      await dialog.getByLabel('Key').fill(key)
      await dialog.getByLabel('Type').selectOption(type)
      if (key === 'seats') await dialog.getByLabel('Fallback').fill('0.5')
      await dialog.getByRole('button', { name: 'Declare property' }).click()
      await main.getByRole('cell', { name: key, exact: true }).waitFor()
    }
    await main.getByRole('button', { name: 'Actions for plan' }).click()
    await page.getByRole('menuitem', { name: 'Change the fallback' }).click()
    await dialog.getByLabel('Fallback').fill('')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await main.getByRole('cell', { name: 'free' }).waitFor({ state: 'detached' })
    expect(await declared()).toMatchObject([
      { key: 'born', type: 'date', fallback: null },
      { key: 'plan', type: 'string', fallback: null },
      { key: 'seats', type: 'number', fallback: 0.5 },
      { key: 'vip', type: 'boolean', fallback: null },
    ])
    expect(complaints).toEqual([])
    await context.close()
  })

  test.each([
    ['on a desktop', desktop],
    ['on a phone', phone],
  ])('the values of a person are shown and changed on their screen, %s', async (_, viewport) => {
    const properties = { plan: '<b>pro</b>', seats: 1, vip: null, born: null }
    await service.client.succeed(contract.subscribers.update, { params: { id: subscriberId }, body: { properties } })
    const { page, main, dialog, context, complaints } = await world.openScreen(`subscribers/${subscriberId}`, {
      viewport,
    })
    await main.getByText('<b>pro</b>').waitFor()
    await keepScreenshots(page, 'subscriber-properties')
    await main.getByRole('button', { name: 'Change values' }).click()
    await dialog.getByLabel('plan').fill('x'.repeat(501))
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText(/500 characters/).waitFor()
    expect(await dialog.getByRole('alert').count()).toBe(0)
    await dialog.getByLabel('plan').fill('')
    await dialog.getByLabel('seats').fill('12.5')
    await dialog.getByLabel('vip').selectOption('No')
    await dialog.getByLabel('born').fill('1815-12-10')
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.waitFor({ state: 'detached' })
    await main.getByText('1815-12-10').waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
    expect(await valuesOf()).toEqual({ seats: 12.5, vip: false, born: '1815-12-10' })
    expect(complaints).toEqual([])
    await context.close()
  })

  test('a contact property is deleted when its key is typed, behind the names of the segments that compare it', async () => {
    const { client } = service
    const audience = await client.succeed(contract.audiences.create, { body: { name: 'Readers' } })
    const compare = (property: string) => ({ type: 'property', property, operator: 'exists', value: true }) as const
    for (const [name, conditions] of [
      ['Paying people', { type: 'not', condition: compare('plan') }],
      ['Other people', compare('seats')],
    ] as const) {
      await client.succeed(contract.segments.create, { body: { audienceId: audience.id, name, conditions } })
    }
    const { page, main, dialog, context } = await world.openScreen('properties')
    await main.getByRole('button', { name: 'Actions for plan' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await dialog.getByText('Paying people').waitFor()
    expect(await dialog.innerText()).not.toContain('Other people')
    const remove = dialog.getByRole('button', { name: 'Delete the property' })
    expect(await remove.isDisabled()).toBe(true)
    await keepScreenshots(page, 'property-delete')
    await dialog.getByRole('textbox').fill('plan')
    await remove.click()
    await main.getByRole('cell', { name: 'plan', exact: true }).waitFor({ state: 'detached' })
    expect((await declared()).map(({ key }) => key)).toEqual(['born', 'seats', 'vip'])
    await context.close()
  })
})
