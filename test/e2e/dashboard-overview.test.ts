import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { accessibilityFaults, desktop, openDashboard, phone, shown } from '../support/dashboard.ts'
import { patienceMs } from '../support/patience.ts'
import { type Person, signUp } from '../support/people.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'

describeInBrowser('the overview', { timeout: 90_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let receiver: Receiver
  let person: Person
  let domainId: string
  let webhookId: string

  beforeAll(async () => {
    ;[service, chromium, receiver] = await Promise.all([startTestService(), startBrowser(), startReceiver()])
    person = await signUp(service)
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
    await receiver?.stop()
  })

  const open = async (options: Omit<Parameters<typeof openDashboard>[2], 'person'> = {}) => {
    const opened = await openDashboard(chromium.browser, service, { person, ...options })
    await opened.page.goto(`/app/${service.accountId}/live/overview`)
    await shown(opened.page)
    return opened
  }

  test('the overview of a new account says what to do first, and ticks off what is done', async () => {
    const { page, context } = await open()
    const steps = page.getByRole('listitem').filter({ has: page.getByRole('img') })
    expect(await steps.getByRole('link').allInnerTexts()).toEqual([
      'Add your domain',
      'Create an API key',
      'Send an email',
      'Add a webhook',
    ])
    // The test service has keys.
    await page.getByRole('listitem').filter({ hasText: 'Create an API key' }).getByLabel('Done').waitFor()
    await page.getByRole('link', { name: 'Add a webhook' }).click()
    await page.getByRole('heading', { name: 'Webhooks', level: 1 }).waitFor()
    await context.close()
  })

  test('the overview shows what happened, in figures, charts and tables', async () => {
    const { client } = service
    receiver.respond(answer(500))
    ;({ id: domainId } = await client.succeed(contract.domains.create, { body: { name: 'shop.test' } }))
    const body = { url: receiver.url, events: ['email.sent' as const] }
    ;({ id: webhookId } = await client.succeed(contract.webhooks.create, { body }))
    for (const name of ['delivered', 'delivered', 'bounced']) {
      await client.succeed(contract.emails.send, {
        body: { from: 'hello@shop.test', to: `${name}@simulator.test`, subject: 'Hello', text: 'Hello' },
      })
    }
    const { page, context, complaints } = await open()
    await expect
      .poll(
        async () => {
          await page.reload()
          await shown(page)
          return page.locator('.tiles > div').allInnerTexts()
        },
        { timeout: patienceMs, interval: 200 },
      )
      .toEqual(expect.arrayContaining(['Sent\n2', 'Delivered\n2\n66.7 %', 'Bounced\n1\n33.3 %', 'Attempts\n2']))
    await page.locator('.recharts-surface').nth(1).waitFor()
    await page.getByText('Recipients, by hour as a table').click()
    const table = page.getByRole('table', { name: 'Recipients, by hour' })
    expect(await table.getByRole('row').count()).toBe(25)
    expect((await table.getByRole('row').last().innerText()).split('\t').slice(1)).toEqual(['2', '2', '1'])

    await page.getByText('Week', { exact: true }).click()
    await page.getByText('What happened in the last 7 days.').waitFor()
    expect(new URL(page.url()).searchParams.get('period')).toBe('week')
    await page.getByText('Recipients, by day of UTC as a table').click()
    expect(await page.getByRole('table', { name: 'Recipients' }).getByRole('row').count()).toBe(8)
    expect(complaints).toEqual([])
    await context.close()
  })

  describe('with much on it', () => {
    beforeAll(async () => {
      const { db } = service.database
      const { accountId } = service
      await sql`
        INSERT INTO statistics_days (account_id, mode, kind, key, day, sent, delivered, bounced, complained, opened,
          clicked, attempts, failed_attempts, answer_ms, latency_50, latency_250)
        SELECT ${accountId}, 'live', kind, CASE kind WHEN 'domain' THEN ${domainId} WHEN 'webhook' THEN ${webhookId} ELSE '' END,
          date_bin('1 day', now() - make_interval(days => number), '2000-01-01 00:00Z'),
          4000 + 600 * (number % 4), 3900 + 560 * (number % 4), 40, 18, 1500, 300, 5000, 1200, 400000, 3000, 1500
        FROM unnest(ARRAY['emails', 'domain', 'webhooks', 'webhook']) kind, generate_series(1, 28) number
      `.execute(db)
      await db.updateTable('domains').set({ status: 'failed' }).where('id', '=', domainId).execute()
    })

    test('the overview with much on it tells what needs attention, with a link to the screen that solves it', async () => {
      const { page, context } = await open()
      const findings = page.locator('.findings li')
      expect((await findings.allInnerTexts()).map((text) => text.split(/\n+/).slice(0, 2).join(': '))).toEqual([
        'shop.test: Required DNS records are missing. Live emails cannot be sent from it.',
        expect.stringMatching(
          /^shop\.test: 0\.3\d % of the recipients of the last 7 days complained\. Gmail and Yahoo/,
        ),
        expect.stringMatching(/^http:.*: 24 % of 5,\d+ attempts since yesterday failed\.$/),
      ])
      await findings.getByRole('link', { name: 'See its deliverability' }).click()
      await page.getByRole('heading', { level: 1 }).filter({ hasText: 'shop.test' }).waitFor()
      expect(new URL(page.url()).pathname).toMatch(new RegExp(`/domains/${domainId}/deliverability$`))
      await context.close()
    })

    test.each([
      { colorScheme: 'light', viewport: desktop },
      { colorScheme: 'dark', viewport: desktop },
      { colorScheme: 'light', viewport: phone },
      { colorScheme: 'dark', viewport: phone },
    ] as const)(
      'the overview with much on it in $colorScheme, $viewport.width pixels wide: axe finds nothing, with tables opened too',
      async ({ colorScheme, viewport }) => {
        const { page, context, complaints } = await open({ colorScheme, viewport })
        await page.getByText('Month', { exact: true }).click()
        await page.getByText('Recipients, by day of UTC as a table').waitFor()
        await page.locator('.recharts-surface').nth(1).waitFor()
        for (const name of await page.locator('summary').all()) await name.click()
        expect(await accessibilityFaults(page)).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width)
        expect(complaints).toEqual([])
        await context.close()
      },
    )
  })
})
