import { join } from 'node:path'
import { sql } from 'kysely'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { shown } from '../support/dashboard.ts'
import { patienceMs } from '../support/patience.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import type { TestService } from '../support/service.ts'
import { createDashboardWorld, type DashboardWorld } from '../support/worlds/dashboard.ts'

const folder = join(import.meta.dirname, '../../docs/images')

const people = ['ada', 'grace', 'alan', 'edsger', 'barbara', 'donald', 'radia', 'ken', 'margaret', 'tim']
const subjects = ['Welcome to Acme', 'Your invoice 4711', 'Your order is on its way', 'Confirm your address']
/** Two in twelve of the readers, whose emails bounce. */
const contacts = 120

describeInBrowser('the pictures in the documents', { timeout: 120_000 }, () => {
  let world: DashboardWorld
  let service: TestService
  let receiver: Receiver
  let page: Page
  let webhookId: string

  beforeAll(async () => {
    ;[world, receiver] = await Promise.all([createDashboardWorld(), startReceiver()])
    ;({ service } = world)
    await service.database.db
      .updateTable('accounts')
      .set({ name: 'Acme' })
      .where('id', '=', service.accountId)
      .execute()
    await service.client.succeed(contract.domains.create, { body: { name: 'acme.test' } })
    const body = {
      url: receiver.url,
      events: ['email.delivered' as const, 'email.bounced' as const],
      description: 'The shop',
    }
    ;({ id: webhookId } = await service.client.succeed(contract.webhooks.create, { body }))
    ;({ page } = await world.open({ viewport: { width: 1200, height: 750 } }))
  }, 60_000)
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    await receiver?.stop()
  })

  async function take(screen: string, name: string, isReady: (page: Page) => Promise<unknown>): Promise<void> {
    await page.goto(`${world.root}/${screen}`)
    await shown(page)
    await isReady(page)
    await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' })
  }

  async function send(number: number): Promise<string> {
    const name = people[number % people.length]
    const to = number % 6 === 4 ? 'bounced@simulator.test' : `${name}@example.org`
    const subject = subjects[number % subjects.length] ?? ''
    const html = `<h1>${subject}</h1><p>Hello ${name}, thank you for choosing Acme.</p>`
    const body = { from: 'Acme <hello@acme.test>', to, subject, html, text: `Hello ${name}` }
    return (await service.client.succeed(contract.emails.send, { body })).id
  }

  test('pictures are taken of the list of emails, of one email, and of a webhook that fails at times', async () => {
    let requests = 0
    receiver.respond((exchange) => answer(requests++ % 5 === 3 ? 500 : 200)(exchange))
    const ids: string[] = []
    for (let number = 0; number < 14; number++) ids.push(await send(number))
    const ended = async () => {
      const { data } = await service.client.succeed(contract.deliveries.list, {
        params: { id: webhookId },
        query: {},
      })
      return data.filter(({ attemptCount }) => attemptCount > 0).length
    }
    await expect.poll(ended, { timeout: patienceMs }).toBe(ids.length)
    await take('emails', 'dashboard-emails', (on) =>
      on.getByRole('cell', { name: 'Confirm your address' }).first().waitFor(),
    )
    await take(`emails/${ids[4]}`, 'dashboard-email', (on) => on.locator('.subtitle', { hasText: 'Bounced' }).waitFor())
    await take(`webhooks/${webhookId}`, 'dashboard-webhook', (on) =>
      on.getByRole('table').getByRole('link').first().waitFor(),
    )
  })

  test('pictures are taken of the results of a campaign', async () => {
    const { client } = service
    const audience = await client.succeed(contract.audiences.create, { body: { name: 'Readers' } })
    for (let number = 0; number < contacts; number++) {
      const email = number % 12 === 5 ? `bounced+${number}@simulator.test` : `reader-${number}@example.org`
      await client.succeed(contract.contacts.add, { params: { audienceId: audience.id }, body: { email } })
    }
    const body = {
      name: 'November newsletter',
      audienceId: audience.id,
      from: 'Acme <news@acme.test>',
      subject: 'What is new in November',
      content: { html: '<h1>What is new in November</h1><p>Hello!</p>' },
    }
    const { id } = await client.succeed(contract.campaigns.create, { body })
    await client.succeed(contract.campaigns.send, { params: { id }, body: {} })
    const statusOf = async () => (await client.succeed(contract.campaigns.get, { params: { id } })).status
    await expect.poll(statusOf, { timeout: patienceMs }).toBe('completed')
    // Moves the campaign back by seven hours, and adds opens and clicks since then.
    const { db } = service.database
    const columns = ['created_at', 'listed_at', 'started_at', 'ended_at'].map(
      (name) => sql`${sql.ref(name)} = ${sql.ref(name)} - interval '7 hours'`,
    )
    await sql`UPDATE campaigns SET ${sql.join(columns)} WHERE id = ${id}`.execute(db)
    for (const table of ['statistics_deltas', 'statistics_hours']) {
      await sql`UPDATE ${sql.table(table)} SET hour = hour - interval '7 hours' WHERE kind = 'campaign'`.execute(db)
    }
    await sql`
      INSERT INTO statistics_hours (account_id, mode, kind, key, hour, opened, clicked)
      SELECT ${service.accountId}, 'live', 'campaign', ${id},
        date_bin('1 hour', now() - make_interval(hours => number), '2000-01-01 00:00Z'),
        (ARRAY[3, 4, 6, 9, 14, 31])[number], (ARRAY[0, 1, 1, 2, 3, 6])[number]
      FROM generate_series(1, 6) number
    `.execute(db)
    await sql`
      INSERT INTO statistics_days (account_id, mode, kind, key, day, opened, clicked)
      VALUES (${service.accountId}, 'live', 'campaign', ${id}, date_bin('1 day', now(), '2000-01-01 00:00Z'), 67, 13)
      ON CONFLICT (account_id, mode, kind, key, day) DO UPDATE SET opened = 67, clicked = 13
    `.execute(db)
    await take(`campaigns/${id}`, 'dashboard-campaign', (on) => on.locator('.recharts-surface').first().waitFor())
  })

  test('pictures are taken of the overview', async () => {
    const { db } = service.database
    // A day of a shop: few at night, most in the afternoon.
    await sql`
      WITH hours AS (
        SELECT date_bin('1 hour', now() - make_interval(hours => number), '2000-01-01 00:00Z') AS hour,
          (900 + 700 * sin((extract(hour FROM now() - make_interval(hours => number)) - 9) * pi() / 12)
            + 60 * (number % 3))::int AS sent
        FROM generate_series(1, 23) number
      )
      INSERT INTO statistics_hours (account_id, mode, kind, key, hour, sent, delivered, bounced, hard_bounced, complained,
        opened, clicked, attempts, failed_attempts, succeeded_deliveries, answer_ms, latency_50, latency_250)
      SELECT ${service.accountId}, 'live', kind, '', hour, sent, sent * 98 / 100, sent / 60, sent / 90, sent / 2000,
        sent * 41 / 100, sent * 6 / 100, sent, sent / 80, sent * 79 / 80, sent * 42, sent * 9 / 10, sent / 10
      FROM hours, unnest(ARRAY['emails', 'webhooks']) kind
      ON CONFLICT DO NOTHING
    `.execute(db)
    await take('overview', 'dashboard-overview', (on) => on.locator('.recharts-surface').first().waitFor())
  })
})
