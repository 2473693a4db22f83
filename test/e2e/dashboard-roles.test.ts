import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { exampleId } from '../../contract/ids.ts'
import { contract } from '../../contract/index.ts'
import type { Permission } from '../../contract/permissions.ts'
import { type Role, rolePermissions, roles } from '../../contract/roles.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import { accessibilityFaults, openByLink, openDashboard } from '../support/dashboard.ts'
import { deadUrl, tomorrow } from '../support/fixtures.ts'
import { importCsv } from '../support/imports.ts'
import { goodPassword, invite, type Person, pageHeaders, signUp } from '../support/people.ts'
import { openPortal } from '../support/portal.ts'
import { untilLogged } from '../support/request-logs.ts'
import type { Made } from '../support/screen.ts'
import { screensOf } from '../support/screens.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { insertCapturedMessage, insertInboundMessage } from '../support/stored-messages.ts'

describeInBrowser('roles in the dashboard', { timeout: 120_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let people: Record<Role, Person>
  let made: Made

  beforeAll(async () => {
    ;[service, chromium] = await Promise.all([startTestService({ roles: { worker: false } }), startBrowser()])
    people = Object.fromEntries(
      await Promise.all(roles.map(async (role) => [role, await signUp(service, { role })] as const)),
    ) as Record<Role, Person>
    // A worker costs processor time all the time that it looks for work: there is one while the screens are filled.
    await using _worker = await startTestService({ beside: service, roles: { api: false } })
    made = await fill()
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
  })

  async function fill(): Promise<Made> {
    const { client } = service
    const webhook = await client.succeed(contract.webhooks.create, {
      body: { url: deadUrl, events: ['subscriber.added'] },
    })
    await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    const domain = await client.succeed(contract.domains.create, { body: { name: 'pending.example' } })
    const email = await client.succeed(contract.emails.send, {
      body: {
        from: 'hello@shop.test',
        to: 'delivered@simulator.test',
        subject: 'Tomorrow',
        text: 'Hello',
        scheduledAt: tomorrow(),
      },
    })
    const audience = await client.succeed(contract.audiences.create, { body: { name: 'Readers' } })
    const contact = await client.succeed(contract.contacts.add, {
      params: { audienceId: audience.id },
      body: { email: 'contact@example.com' },
    })
    const content = { html: '<p>Hello</p>' }
    const campaign = await client.succeed(contract.campaigns.create, {
      body: { name: 'Spring news', audienceId: audience.id, from: 'hello@shop.test', subject: 'Spring', content },
    })
    const template = await client.succeed(contract.templates.create, {
      body: { name: 'Welcome', subject: 'Welcome', ...content },
    })
    await client.succeed(contract.topics.create, { body: { name: 'Product news', default: 'opt_out' } })
    await client.succeed(contract.contactProperties.create, { body: { key: 'plan', type: 'string' } })
    await client.succeed(contract.suppressions.create, { body: { address: 'contact@example.com' } })
    await client.succeed(contract.apiKeys.create, { body: { name: 'Shop', permissions: ['emails:send'] } })
    await people.owner.send('POST', '/v1/invitations', { json: { email: 'invited@example.com', role: 'viewer' } })
    await openPortal(service, { customer: '42' })
    await client.succeed(contract.webhooks.test, { params: { id: webhook.id }, body: {} })
    const { data: deliveries } = await client.succeed(contract.deliveries.list, {
      params: { id: webhook.id },
      query: {},
    })
    const { data: events } = await client.succeed(contract.events.list, { query: { type: 'contact.created' } })
    await client.send('GET', `/v1/events/${exampleId('event')}`)
    const [delivery, event] = [deliveries[0], events[0]]
    if (delivery === undefined || event === undefined) throw new Error('there is no delivery or no event')
    return {
      email: email.id,
      campaign: campaign.id,
      template: template.id,
      captured: await insertCapturedMessage(service.database, { accountId: service.accountId }),
      inbound: await insertInboundMessage(service.database, { accountId: service.accountId }),
      domain: domain.id,
      webhook: webhook.id,
      delivery: delivery.id,
      event: String(event.id),
      subscriber: contact.subscriberId,
      audience: audience.id,
      segment: (
        await client.succeed(contract.segments.create, {
          body: {
            audienceId: audience.id,
            name: 'Pro readers',
            conditions: { type: 'field', field: 'status', operator: 'is', value: 'active' },
          },
        })
      ).id,
      import: await importCsv(service, {
        audienceId: audience.id,
        fileName: 'people.csv',
        csv: 'email\nnobody\n',
      }),
      request: await untilLogged(service, { status: '404' }),
    }
  }

  const may = (role: Role, permission: Permission | null) =>
    permission === null || (rolePermissions[role] as readonly Permission[]).includes(permission)

  const button = (page: Page, name: string | RegExp) =>
    page.getByRole('main').getByRole('button', { name, exact: true })

  test.each(roles)('%s sees each screen that the role allows, with its buttons, and no other', async (role) => {
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person: people[role] })
    let refusals = 0
    for (const screen of screensOf(made)) {
      const { path, heading, area = heading, permission, buttons, isApart = false } = screen
      await openByLink(page, `/app/${service.accountId}/live/${path}`)
      const isSeen = may(role, permission)
      await page.getByRole('heading', { level: 1, name: isSeen ? heading : area, exact: true }).waitFor()
      await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' })
      const refusal = page.getByRole('heading', { name: 'Your role does not allow this' })
      expect(await refusal.count(), path).toBe(isSeen ? 0 : 1)
      expect(await page.getByRole('alert').count(), path).toBe(0)
      // The others differ from the first one in the words of their heading.
      if (!isSeen && refusals++ === 0) expect(await accessibilityFaults(page), path).toEqual([])
      for (const [name, needed] of buttons) {
        if (isSeen && may(role, needed)) await button(page, name).first().waitFor()
        else expect(await button(page, name).count(), `${path}: ${name}`).toBe(0)
      }
      if (isApart || (path.includes('/') && !path.startsWith('settings'))) continue
      const link = page.getByRole('navigation').getByRole('link', { name: heading, exact: true })
      expect(await link.count(), path).toBe(isSeen ? 1 : 0)
    }
    expect(complaints).toEqual([])
    await context.close()
  })

  test.each(roles)('the API refuses %s what the screens do not show', async (role) => {
    for (const [operation, permission] of screensOf(made).flatMap(({ calls }) => calls)) {
      const [method = '', path = ''] = operation.split(' ')
      const { status, body } = await people[role].send(method, path, method === 'GET' ? {} : { json: {} })
      const message = Object(body).error?.message
      if (may(role, permission)) expect(status, `${operation}: ${message}`).not.toBe(401)
      else expect([status, message], operation).toEqual([401, expect.stringContaining(`"${permission}"`)])
    }
  })

  test('an admin is offered no owners: neither to invite, nor to change or remove', async () => {
    const { page, context } = await openDashboard(chromium.browser, service, { person: people.admin })
    await people.owner.send('PATCH', '/v1/user', { json: { name: 'The Owner' } })
    await people.owner.send('POST', '/v1/invitations', { json: { email: 'owner-too@example.com', role: 'owner' } })
    await page.goto(`/app/${service.accountId}/live/settings/members`)
    await page.getByRole('row', { name: /The Owner/ }).waitFor()
    await page.getByRole('row', { name: /owner-too@example.com/ }).waitFor()
    expect(await button(page, 'Actions for The Owner').count()).toBe(0)
    expect(await button(page, 'Withdraw the invitation of owner-too@example.com').count()).toBe(0)
    expect(await button(page, 'Withdraw the invitation of invited@example.com').count()).toBe(1)
    await button(page, 'Invite').click()
    const offered = page.getByRole('dialog').getByRole('radio')
    await offered.first().waitFor()
    expect(await offered.count()).toBe(roles.length - 1)
    expect(await page.getByRole('radio', { name: 'Owner' }).count()).toBe(0)
    const refused = await Promise.all([
      people.admin.send('POST', '/v1/invitations', { json: { email: 'x@example.com', role: 'owner' } }),
      people.admin.send('PATCH', `/v1/members/${people.owner.userId}`, { json: { role: 'viewer' } }),
      people.admin.send('DELETE', `/v1/members/${people.owner.userId}`),
    ])
    expect(refused.map(({ status }) => status)).toEqual([401, 401, 401])
    await context.close()
  })

  test('a user of two accounts sees the things of one at a time, with the role that they have there', async () => {
    const { db } = service.database
    const others = await db.selectFrom('accounts').select(['id', 'name']).where('id', '<>', service.accountId).execute()
    const theirs = others.find(({ name }) => name === 'Theirs')
    if (theirs === undefined) throw new Error('there is no account "Theirs"')
    const person = await signUp(service, { role: 'viewer' })
    const token = await invite(service, { email: person.email, accountId: theirs.id, role: 'admin' })
    const accepted = await service.client.send('POST', '/v1/links/accept', {
      key: null,
      headers: pageHeaders(service.url),
      json: { token, password: goodPassword },
    })
    expect(accepted.status).toBe(201)
    const client = service.client.as(service.keys.other)
    await client.succeed(contract.domains.create, { body: { name: 'theirs.test' } })

    const { page, context } = await openDashboard(chromium.browser, service, { person })
    await page.goto(`/app/${service.accountId}/live/domains`)
    const main = page.getByRole('main')
    await main.getByRole('link', { name: 'shop.test' }).waitFor()
    expect(await main.innerText()).not.toContain('theirs.test')
    expect(await button(page, 'Add domain').count()).toBe(0)

    await page.getByRole('button', { name: 'Account Ours: switch' }).click()
    await page.getByRole('menuitem', { name: 'Theirs' }).click()
    await page.getByRole('heading', { name: 'First steps' }).waitFor()
    await page.getByRole('link', { name: 'Domains' }).click()
    await main.getByRole('link', { name: 'theirs.test' }).waitFor()
    expect(await main.innerText()).not.toContain('shop.test')
    await button(page, 'Add domain').waitFor()
    expect(await page.title()).toBe('Domains · Theirs · Postern')

    // An object of one account is not there in the other.
    await page.goto(`/app/${theirs.id}/live/domains/${made.domain}`)
    await page.getByRole('heading', { name: 'There is no such domain' }).waitFor()
    expect(await main.innerText()).not.toContain('pending.example')
    await page.goto(`/app/${service.accountId}/live/domains/${made.domain}`)
    await page.getByRole('heading', { level: 1, name: 'pending.example' }).waitFor()
    await context.close()
  })
})
