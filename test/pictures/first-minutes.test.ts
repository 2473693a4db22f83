import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { createTestClient } from '../support/client.ts'
import { shown } from '../support/dashboard.ts'
import { patienceMs } from '../support/patience.ts'
import { type Receiver, startReceiver } from '../support/receiver.ts'
import { createDashboardWorld, type DashboardWorld } from '../support/worlds/dashboard.ts'

const folder = join(import.meta.dirname, '../../docs/images')

describeInBrowser('the pictures of the first minutes', { timeout: 120_000 }, () => {
  let world: DashboardWorld
  let receiver: Receiver
  let page: Page

  beforeAll(async () => {
    ;[world, receiver] = await Promise.all([createDashboardWorld(), startReceiver()])
    const { service } = world
    const { db } = service.database
    await db.updateTable('accounts').set({ name: 'Acme' }).execute()
    // Those of the tests: a first start has one key.
    await db.deleteFrom('api_keys').execute()
    ;({ page } = await world.open({ viewport: { width: 1200, height: 750 } }))
  }, 60_000)
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    await receiver?.stop()
  })

  async function take(name: string): Promise<void> {
    await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' })
  }

  test('the pictures of the first minutes of the first key, the first email and the first delivery to a webhook', async () => {
    await page.goto(world.root)
    await page.getByRole('link', { name: 'API keys' }).click()
    await page.getByRole('button', { name: 'Create API key' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('The shop')
    await dialog.getByRole('button', { name: 'Create API key' }).click()
    const key = await dialog.getByRole('button', { name: /^Copy the key/ }).innerText()
    await take('first-key')

    await using client = createTestClient({ url: world.service.url, key })
    const webhook = await client.succeed(contract.webhooks.create, {
      body: { url: receiver.url, events: ['email.delivered'], description: 'The shop' },
    })
    await client.succeed(contract.domains.create, { body: { name: 'acme.test' } })
    const email = await client.succeed(contract.emails.send, {
      body: {
        from: 'Acme <hello@acme.test>',
        to: 'Ada Lovelace <ada@example.org>',
        subject: 'Welcome to Acme',
        html: '<h1>Welcome to Acme</h1><p>Hello Ada, thank you for choosing Acme.</p>',
        text: 'Hello Ada, thank you for choosing Acme.',
      },
    })
    await page.goto(`${world.root}/emails/${email.id}`)
    await page.locator('.subtitle', { hasText: 'Delivered' }).waitFor()
    await shown(page)
    await take('first-email')

    const deliveries = async () =>
      (await client.succeed(contract.deliveries.list, { params: { id: webhook.id }, query: {} })).data
    await expect.poll(async () => (await deliveries())[0]?.status, { timeout: patienceMs }).toBe('succeeded')
    await page.goto(`${world.root}/webhooks/${webhook.id}/deliveries/${(await deliveries())[0]?.id}`)
    await page.getByRole('main').getByText('email.delivered').first().waitFor()
    await shown(page)
    await take('first-delivery')
  })
})
