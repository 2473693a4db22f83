import { createHmac } from 'node:crypto'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { newId } from '../../server/shared/ids.ts'
import { describeInBrowser } from '../support/browser.ts'
import { phone, screenFaults, shown } from '../support/dashboard.ts'
import { patienceMs } from '../support/patience.ts'
import { answer, type Received, type Receiver, startReceiver } from '../support/receiver.ts'
import { createDashboardWorld, type DashboardWorld, type OpenedDashboard } from '../support/worlds/dashboard.ts'

type Inserted = {
  id: string
  webhookId: string
  status: 'running' | 'completed'
  since: Date
  at: Date
  found?: number
}

/** Inserts a recovery that no task goes on with, so that it stays as it is. */
async function insertRecovery(
  { service }: DashboardWorld,
  { id, webhookId, status, since, at, found = 1_040 }: Inserted,
) {
  const isRunning = status === 'running'
  await service.database.db
    .insertInto('webhook_recoveries')
    .values({
      account_id: service.accountId,
      id,
      webhook_id: webhookId,
      status,
      since,
      until: null,
      types: ['subscriber.added'],
      found,
      found_all: !isRunning,
      done: isRunning ? Math.min(12, found) : found,
      created_at: at,
      last_position: null,
      completed_at: isRunning ? null : at,
    })
    .execute()
}

/* Each step builds on the one before: one webhook, from its test to what it has missed. */
describeInBrowser('a webhook in the dashboard', { timeout: 90_000 }, () => {
  let world: DashboardWorld
  let receiver: Receiver
  let opened: OpenedDashboard
  let page: Page
  let main: Locator
  let dialog: Locator
  let webhook: { id: string; secret: string }
  let persons = 0

  beforeAll(async () => {
    ;[world, receiver] = await Promise.all([createDashboardWorld(), startReceiver()])
    webhook = await world.service.client.succeed(contract.webhooks.create, {
      body: { url: receiver.url, events: ['subscriber.added', 'domain.created'] },
    })
    opened = await world.openScreen(`webhooks/${webhook.id}`)
    ;({ page, main, dialog } = opened)
  })
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    await receiver?.stop()
  })

  /** Chooses something that can be done with the webhook. */
  async function choose(item: string): Promise<void> {
    await main.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: item, exact: true }).click()
  }

  /** Has one more event happen, and returns whom it is about. */
  async function addSubscriber(): Promise<string> {
    const email = `person-${++persons}@example.com`
    await world.service.client.succeed(contract.subscribers.create, { body: { email } })
    return email
  }

  /** Whether the signature of a request was made with the secret. */
  const isSigned = ({ headers, body }: Received, secret: string) =>
    headers['x-service-signature'] === createHmac('sha256', secret).update(body).digest('hex')

  const eventIn = ({ body }: Received) => JSON.parse(body.toString())

  /** Waits for request number `count`, and returns it. */
  async function arrived(count: number): Promise<Received> {
    const request = (await receiver.received(count))[count - 1]
    if (request === undefined) throw new Error('no request arrived')
    return request
  }

  const deliveryLinks = () => main.getByRole('table').getByRole('link')

  test('a test sends the event that was chosen, and says how it was taken', async () => {
    await main.getByRole('button', { name: 'Send a test' }).click()
    await dialog.getByLabel('Event').selectOption('domain.created')
    await dialog.getByRole('button', { name: 'Send it' }).click()
    await dialog.getByText('The endpoint accepted it').waitFor()
    const request = await arrived(1)
    expect(eventIn(request).type).toBe('domain.created')
    expect(isSigned(request, webhook.secret)).toBe(true)
    await dialog.getByRole('button', { name: 'Close' }).last().click()
  })

  test('a rotated secret is shown once, and signs the next event', async () => {
    await choose('Rotate the secret')
    await dialog.getByRole('button', { name: 'Rotate the secret' }).click()
    const secret = (await dialog.getByRole('button', { name: /^Copy the secret/ }).innerText()).trim()
    await dialog.getByRole('button', { name: 'I have copied it' }).click()
    const email = await addSubscriber()
    const request = await arrived(2)
    expect(eventIn(request).data.email).toBe(email)
    expect(isSigned(request, secret)).toBe(true)
    expect(isSigned(request, webhook.secret)).toBe(false)
    expect(await page.content()).not.toContain(secret)
  })

  test('an edited webhook gets the event types and the path that were saved', async () => {
    await choose('Edit')
    await dialog.getByLabel('URL').fill(`${receiver.url}/people`)
    await dialog.getByRole('checkbox', { name: 'domain.created' }).uncheck()
    await dialog.getByLabel('Description').fill('People of the shop')
    const add = dialog.getByRole('button', { name: 'Add a pair' })
    await add.click()
    await add.click()
    await add.click()
    await dialog.getByLabel('Name 1').fill('customer')
    await dialog.getByLabel('Value 1').fill('42')
    await dialog.getByLabel('Name 2').fill('customer')
    await dialog.getByRole('button', { name: 'Remove pair 3' }).click()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('Two pairs have the same name').waitFor()
    await dialog.getByLabel('Name 2').fill('team')
    await dialog.getByLabel('Value 2').fill('shop')
    expect(await screenFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { level: 1, name: `${receiver.url}/people` }).waitFor()
    await main.getByText('People of the shop').waitFor()
    await main.getByText('team: shop').waitFor()
    await main.getByRole('link', { name: '42', exact: true }).waitFor()
    const changed = await world.service.client.succeed(contract.webhooks.get, { params: { id: webhook.id } })
    expect(changed.metadata).toEqual({ customer: '42', team: 'shop' })
    await world.service.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    await addSubscriber()
    expect((await arrived(3)).url).toBe('/hooks/people')
    expect(eventIn(await arrived(3)).type).toBe('subscriber.added')
  })

  test('a failed delivery is found by its state, tells why it waits, and arrives when it is sent again', async () => {
    receiver.respondOnce(answer(503, { body: 'database is down' }))
    await addSubscriber()
    const request = await arrived(4)
    const failed = eventIn(request)
    await main.getByLabel('State').selectOption('pending')
    await expect.poll(() => deliveryLinks().allInnerTexts()).toEqual(['subscriber.added'])
    await page.reload()
    await main.getByLabel('Event').selectOption('subscriber.added')
    await expect.poll(() => deliveryLinks().allInnerTexts()).toEqual(['subscriber.added'])
    await expect.poll(() => new URL(page.url()).search).toBe('?status=pending&eventType=subscriber.added')
    await deliveryLinks().first().click()
    await main.getByText('the time of its next attempt').waitFor()
    await main.getByText('Answered 503').waitFor()
    await main.getByText('database is down').waitFor()
    await main.locator('summary', { hasText: `Request 1: POST ${receiver.url}/people` }).click()
    await main.getByText(`webhook-id: ${failed.id}`).waitFor()
    // Each header is there, or the note names it.
    const told = await main.locator('details', { hasText: 'Request 1' }).innerText()
    expect(Object.keys(request.headers).filter((name) => !told.includes(name))).toEqual([])
    expect(await screenFaults(page)).toEqual([])
    await main.getByRole('button', { name: 'Send again' }).click()
    expect(eventIn(await arrived(5))).toEqual(failed)
    await main.locator('.subtitle', { hasText: 'Succeeded' }).waitFor()
    expect(await main.locator('.timeline .state').allInnerTexts()).toEqual(['Succeeded', 'Failed'])
  })

  test('what came while it was disabled is sent by a recovery, whose progress is shown', async () => {
    await page.goto(`${world.root}/webhooks/${webhook.id}`)
    await choose('Disable')
    await dialog.getByRole('button', { name: 'Disable it' }).click()
    await main.getByText('It receives nothing').waitFor()
    const missed = [await addSubscriber(), await addSubscriber()]
    await choose('Enable')
    await dialog.getByRole('button', { name: 'Enable it' }).click()
    await main.getByText('It receives nothing').waitFor({ state: 'detached' })
    expect(receiver.requests).toHaveLength(5)

    await choose('Send again what it missed')
    await dialog.getByRole('button', { name: 'Send them' }).click()
    await dialog.getByText(`All ${missed.length} are on their way.`).waitFor()
    const progress = dialog.getByRole('progressbar', { name: 'Deliveries put on their way' })
    expect(await progress.getAttribute('aria-valuenow')).toBe('100')
    const resent = (await receiver.received(7)).slice(5).map((request) => eventIn(request).data.email)
    expect(resent.toSorted()).toEqual(missed)
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    // The figures of the list, which count attempts when their ends are recorded, are read seldom.
    await expect.poll(() => main.getByRole('table').getByRole('cell', { name: 'Succeeded' }).count()).toBe(6)
    expect(await screenFaults(page)).toEqual([])
  })

  const recoveries = () => main.getByRole('table', { name: 'Recoveries' }).locator('tbody').getByRole('row')

  test('a recovery that was started earlier is seen after a reload, and a running one until it ends', async () => {
    await page.reload()
    await recoveries()
      .filter({ hasText: /Completed.*2 of 2/ })
      .waitFor()
    expect(await recoveries().count()).toBe(1)

    const since = new Date('2026-03-01T09:30:00Z')
    const insert = (status: 'running' | 'completed', at: Date) =>
      insertRecovery(world, { id: newId('recovery', at), webhookId: webhook.id, status, since, at })
    // Within the retention, so that they are not deleted meanwhile.
    for (const hours of [5, 4, 3, 2, 1]) await insert('completed', new Date(Date.now() - hours * 3_600_000))
    await insert('running', new Date())
    // It is seen without a reload.
    const running = recoveries().first()
    await running.filter({ hasText: /Running.*12 of at least 1,040/ }).waitFor()
    await running.locator(`time[datetime="${since.toISOString()}"]`).waitFor()
    expect(await recoveries().count()).toBe(5)
    expect(await screenFaults(page)).toEqual([])

    const update = (status: 'enabled' | 'disabled') =>
      world.service.client.succeed(contract.webhooks.update, { params: { id: webhook.id }, body: { status } })
    await update('disabled')
    await running.filter({ hasText: 'Canceled' }).waitFor()
    await update('enabled')
    await main.getByRole('button', { name: 'Show more' }).click()
    await expect.poll(() => recoveries().count()).toBe(7)
    const small = await world.openScreen(`webhooks/${webhook.id}`, { viewport: phone })
    const stopped = small.main.getByText('12 of at least 1,040').first()
    await stopped.filter({ hasText: /started (just now|.+ ago), ended (just now|.+ ago)/ }).waitFor()
    expect(await small.page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    expect(await screenFaults(small.page)).toEqual([])
    expect(small.complaints).toEqual([])
    await small.context.close()
  })

  test('recoveries that cannot be read leave the rest of the screen, also while they are read again', async () => {
    const other = await world.openScreen('webhooks')
    let held = Promise.withResolvers<void>()
    held.resolve()
    let requests = 0
    await other.page.route('**/recoveries?*', async (route) => {
      requests += 1
      await held.promise
      await route.fulfill({ status: 403, json: { error: { code: 'forbidden', message: 'Not for you.' } } })
    })
    await other.main.getByRole('link', { name: /people$/ }).click()
    await other.main.getByText('Not for you.').waitFor()
    await other.main.getByRole('table', { name: 'Deliveries' }).waitFor()
    held = Promise.withResolvers<void>()
    const before = requests
    await other.main.getByRole('button', { name: 'Try again' }).click()
    await expect.poll(() => requests).toBe(before + 1)
    await other.main.getByRole('table', { name: 'Recoveries' }).waitFor()
    expect(await other.main.getByRole('table', { name: 'Deliveries' }).count()).toBe(1)
    await other.main.getByText('People of the shop').waitFor()
    held.resolve()
    await other.main.getByText('Not for you.').waitFor()
    await other.context.close()
  })

  test('the list tells how much was tried since yesterday, and how much of it failed', async () => {
    await main.getByRole('link', { name: 'Webhooks', exact: true }).click()
    const row = main.getByRole('row', { name: /People of the shop/ })
    await row.getByText('6 attempts').waitFor()
    await row.getByText('16.7 % failed', { exact: true }).waitFor()
    expect(await row.getByText('16.7 % failed since yesterday').isVisible()).toBe(false)
    expect(await screenFaults(page)).toEqual([])
  })

  test('the list on a phone says of each webhook how it does', async () => {
    const { client } = world.service
    // An empty customer is none: there is nothing to link.
    const metadata = { customer: '' }
    const body = { url: 'https://quiet.example/hook', events: ['email.bounced' as const], metadata }
    const quiet = await client.succeed(contract.webhooks.create, { body })
    const small = await world.openScreen('webhooks', { viewport: phone })
    const row = (name: RegExp) => small.main.getByRole('row', { name })
    await row(/quiet\.example/)
      .getByText('No attempts since yesterday')
      .waitFor()
    await row(/People of the shop/)
      .getByText('16.7 % failed since yesterday')
      .waitFor()
    expect(await small.page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    expect(await screenFaults(small.page)).toEqual([])
    const at = new Date()
    await insertRecovery(world, {
      id: newId('recovery', at),
      webhookId: quiet.id,
      status: 'running',
      since: at,
      at,
      found: 0,
    })
    await small.main.getByRole('link', { name: body.url }).click()
    await small.main.getByRole('heading', { name: 'Recoveries' }).waitFor()
    await small.main.getByText('Counting …').first().waitFor()
    await small.main.getByText('Receiver', { exact: true }).waitFor()
    expect(await small.main.getByText('Customer', { exact: true }).count()).toBe(0)
    expect(await screenFaults(small.page)).toEqual([])
    expect(small.complaints).toEqual([])
    await small.context.close()
    await client.succeed(contract.webhooks.delete, { params: { id: quiet.id } })
  })

  test('the navigation of a low window shows the link of the screen, and Tab begins at the top', async () => {
    const low = await world.openScreen('settings/audit-log', { viewport: { width: 1_280, height: 420 } })
    const links = low.page.getByRole('navigation', { name: 'Screens' })
    const seen = low.page.locator('.navbar .mantine-ScrollArea-viewport')
    /** How far a link is above or below what is seen of the navigation. Pixels; 0: it is in sight. */
    async function outOfSight(name: string): Promise<number> {
      const [frame, link] = [
        await seen.boundingBox(),
        await links.getByRole('link', { name, exact: true }).boundingBox(),
      ]
      if (frame === null || link === null) throw new Error('the navigation is not shown')
      return Math.round(Math.max(0, frame.y - link.y, link.y + link.height - frame.y - frame.height))
    }
    const focused = 'document.activeElement?.textContent'
    await expect.poll(() => outOfSight('Audit log'), { timeout: patienceMs }).toBe(0)
    expect(await outOfSight('Overview')).toBeGreaterThan(0)
    await low.page.keyboard.press('Tab')
    expect(await low.page.evaluate(focused)).toBe('Skip to the content')
    await low.page.goto(`${world.root}/overview`)
    await shown(low.page)
    await expect.poll(() => outOfSight('Overview'), { timeout: patienceMs }).toBe(0)
    expect(await outOfSight('Audit log')).toBeGreaterThan(0)
    await low.page.goBack()
    await expect.poll(() => outOfSight('Audit log'), { timeout: patienceMs }).toBe(0)
    expect(low.complaints).toEqual([])
    await low.context.close()
  })

  test('a webhook in the dashboard broke no rule of the Content-Security-Policy', () => {
    expect(opened.complaints).toEqual([])
  })
})
