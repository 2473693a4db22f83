import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { createDashboardWorld, type DashboardWorld } from '../support/worlds/dashboard.ts'

describeInBrowser('the figures of a campaign in the dashboard', { timeout: 120_000 }, () => {
  let world: DashboardWorld
  beforeAll(async () => {
    world = await createDashboardWorld()
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  const { campaigns } = contract
  const people = 10

  /** Sends a campaign to an A/B test, and returns its id once it waits for somebody to choose the winner. */
  async function startTest(): Promise<string> {
    const { client } = world.service
    await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    const { id: audienceId } = await client.succeed(contract.audiences.create, { body: { name: 'Readers' } })
    const contacts = Array.from({ length: people }, (_, index) => ({ email: `person-${index}@example.org` }))
    await client.succeed(contract.contacts.addBatch, { params: { audienceId }, body: { contacts } })
    const variants = [{ name: 'A' }, { name: 'B', subject: 'It is spring' }]
    const { id } = await client.succeed(campaigns.create, {
      body: {
        name: 'Spring',
        audienceId,
        from: 'hello@shop.test',
        subject: 'Spring is here',
        content: { html: '<p>Spring. <a href="{{ unsubscribeUrl }}">Unsubscribe</a></p>' },
        abTest: { variants, share: 50, winnerBy: 'manual' },
      },
    })
    await client.succeed(campaigns.send, { params: { id }, body: {} })
    await waitForCampaign(id, { waitingFor: { reason: 'ab_test' } })
    return id
  }

  async function waitForCampaign(id: string, fields: object): Promise<void> {
    const read = () => world.service.client.succeed(campaigns.get, { params: { id } })
    await expect.poll(read, { timeout: 60_000 }).toMatchObject(fields)
  }

  test('figures of a campaign that were read before it completed are not shown as its last ones', async () => {
    const { page, main } = await world.open()
    const id = await startTest()
    // Statistics that the page reads from here on arrive only after it has seen that the campaign is complete.
    const seen = Promise.withResolvers<void>()
    const held = Promise.withResolvers<void>()
    await page.route(`**/campaigns/${id}/statistics`, async (route) => {
      const response = await route.fetch()
      held.resolve()
      await seen.promise
      await route.fulfill({ response })
    })
    await page.goto(`${world.root}/campaigns/${id}`)
    await main.locator('.subtitle', { hasText: 'Sending' }).waitFor()
    await held.promise
    await world.service.client.succeed(campaigns.winner, { params: { id }, body: { variant: 'A' } })
    await waitForCampaign(id, { status: 'completed' })
    await main.locator('.subtitle', { hasText: 'Completed' }).waitFor()
    seen.resolve()
    // By themselves, the figures of a campaign that has ended are read every 30 s.
    await main.getByText(`${people} of ${people} emails were handed over.`).waitFor({ timeout: 15_000 })
  })
})
