import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, phone, shown } from '../support/dashboard.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import type { TestService } from '../support/service.ts'
import { createDashboardWorld, type DashboardWorld, type OpenedDashboard } from '../support/worlds/dashboard.ts'

describeInBrowser('people in the dashboard', { timeout: 90_000 }, () => {
  /** The simulator accepts every email to it. */
  const address = 'delivered@simulator.test'
  let world: DashboardWorld
  let service: TestService
  let opened: OpenedDashboard
  let page: Page
  let root: string
  let main: Locator
  let dialog: Locator

  beforeAll(async () => {
    world = await createDashboardWorld()
    ;({ service, root } = world)
    opened = await world.open()
    ;({ page, main, dialog } = opened)
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  async function choose(of: string, item: string): Promise<void> {
    await main.getByRole('button', { name: of, exact: true }).click()
    await page.getByRole('menuitem', { name: item, exact: true }).click()
  }

  async function search(text: string): Promise<void> {
    await page.getByLabel('Search').fill(text)
    await page.getByLabel('Search').press('Enter')
  }

  const subscriber = async () => {
    const { data } = await service.client.succeed(contract.subscribers.list, { query: { email: address } })
    const [found] = data
    if (found === undefined) throw new Error('there is no such subscriber')
    return found
  }

  const audiencesOfSubscriber = async () => {
    const { id } = await subscriber()
    return (await service.client.succeed(contract.contacts.listOfSubscriber, { params: { id }, query: {} })).data
  }

  test('a subscriber is added, found by the beginning of a name, and edited on a screen of their own', async () => {
    await page.goto(`${root}/subscribers`)
    await page.getByRole('button', { name: 'Add subscriber' }).first().click()
    await dialog.getByLabel('Email').fill(address)
    await dialog.getByLabel('First name').fill('Ada')
    await dialog.getByLabel('Last name').fill('Lovelace')
    await dialog.getByRole('button', { name: 'Add subscriber' }).click()
    await main.getByRole('link', { name: address }).waitFor()

    await search('Grace')
    await page.getByRole('heading', { name: 'No subscriber fits these filters' }).waitFor()
    await search('love')
    await main.getByRole('link', { name: address }).click()
    await page.getByRole('heading', { level: 1, name: address }).waitFor()
    await page.getByRole('heading', { name: 'In no audience yet' }).waitFor()
    await page.getByRole('heading', { name: 'No emails to this address in live mode' }).waitFor()

    await main.getByRole('button', { name: 'Edit' }).click()
    // Accepted by the browser, and refused by the API.
    await dialog.getByLabel('Email').fill('ada..lovelace@example.com')
    await dialog.getByLabel('First name').fill('Augusta')
    await dialog.getByLabel('Last name').fill('')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText('Must be an email address').waitFor()
    await dialog.getByLabel('Email').fill(address)
    await dialog.getByRole('button', { name: 'Save' }).click()
    await main.getByText('Augusta', { exact: true }).waitFor()
    expect(await subscriber()).toMatchObject({ email: address, firstName: 'Augusta', lastName: null })
  })

  test('an audience is created and edited, and its contacts are added, found, unsubscribed and removed', async () => {
    await page.goto(`${root}/audiences`)
    await page.getByRole('button', { name: 'Create audience' }).first().click()
    await dialog.getByLabel('Name').fill('News')
    await dialog.getByRole('button', { name: 'Create audience' }).click()
    await page.getByRole('heading', { level: 1, name: 'News' }).waitFor()
    await main.getByRole('button', { name: 'Edit', exact: true }).click()
    await dialog.getByLabel('Name').fill('Monthly news')
    await dialog.getByLabel('Description').fill('Once a month')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { level: 1, name: 'Monthly news' }).waitFor()
    await main.getByText('Once a month').waitFor()

    for (const email of [address, 'grace@example.com']) {
      await main.getByRole('button', { name: 'Add contact' }).click()
      await dialog.getByLabel('Email').fill(email)
      await dialog.getByRole('button', { name: 'Add contact' }).click()
      await main.getByRole('link', { name: email }).waitFor()
    }
    await search('gra')
    await main.getByRole('link', { name: address }).waitFor({ state: 'detached' })
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      main.getByRole('button', { name: 'Export' }).click(),
    ])
    expect(file.suggestedFilename()).toMatch(/^contacts-aud_\w+\.csv$/)
    const lines = (await readFile(await file.path(), 'utf8')).trim().split('\r\n')
    expect(lines.map((line) => line.split(',')[0])).toEqual(['email', address, 'grace@example.com'])
    await choose('Actions for grace@example.com', 'Unsubscribe')
    await dialog.getByRole('button', { name: 'Unsubscribe' }).click()
    await main.getByRole('cell', { name: 'Unsubscribed' }).waitFor()
    await choose('Actions for grace@example.com', 'Subscribe again')
    await dialog.getByRole('button', { name: 'Subscribe again' }).click()
    await main.getByRole('cell', { name: 'Active' }).waitFor()
    await choose('Actions for grace@example.com', 'Remove')
    await dialog.getByText('The subscriber stays').waitFor()
    await dialog.getByRole('button', { name: 'Remove the contact' }).click()
    await page.getByRole('heading', { name: 'No contact fits these filters' }).waitFor()
    await main.getByRole('button', { name: 'Clear the filters' }).click()
    await main.getByRole('link', { name: address }).waitFor()
    await choose(`Actions for ${address}`, 'Remove')
    await dialog.getByRole('button', { name: 'Remove the contact' }).click()
    await page.getByRole('heading', { name: 'No contacts yet' }).waitFor()
    expect(await audiencesOfSubscriber()).toEqual([])
  })

  test('a file that cannot be reached, breaks off half way or is stopped is not saved, and the screen says why', async () => {
    const { page, main, context } = await world.open()
    const { id } = await service.client.succeed(contract.audiences.create, { body: { name: 'Cut off' } })
    const broken = createServer(({ url }, response) => {
      response.writeHead(200, { 'Content-Length': 100 })
      response.write('email\n', () => url === '/cut' && response.destroy())
    })
    await once(broken.listen(0, '127.0.0.1'), 'listening')
    const { port } = broken.address() as AddressInfo
    let downloads = 0
    page.on('download', () => {
      downloads += 1
    })
    await page.goto(`${root}/audiences/${id}`)
    const file = /\/contacts\/export$/
    const save = main.getByRole('button', { name: 'Export' })
    await page.route(file, (route) => route.abort())
    await save.click()
    await main.getByRole('alert').getByText('The service cannot be reached.').waitFor()
    await page.unroute(file)
    await page.route(file, (route) => route.continue({ url: `http://127.0.0.1:${port}/cut` }))
    await save.click()
    await main.getByRole('alert').getByText('The file was not read to its end. Try again.').waitFor()
    await page.unroute(file)
    await page.route(file, (route) => route.continue({ url: `http://127.0.0.1:${port}/endless` }))
    await save.press('Enter')
    await main.getByText('6 bytes so far').waitFor()
    expect(await main.getByRole('alert').count()).toBe(0)
    expect(await accessibilityFaults(page)).toEqual([])
    await keepScreenshots(page, 'download-running')
    expect(await page.evaluate('document.activeElement.innerText')).toBe('Stop')
    await page.keyboard.press('Enter')
    await main.getByText('so far').waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.innerText')).toBe('Export')
    expect(await main.getByRole('alert').count()).toBe(0)
    await page.unroute(file)
    broken.close()
    expect(downloads).toBe(0)
    await Promise.all([page.waitForEvent('download'), save.click()])
    expect(await main.getByRole('alert').count()).toBe(0)
    await context.close()
    await service.client.succeed(contract.audiences.delete, { params: { id } })
  })

  test('people of an audience with double opt-in are pending, asked again, and marked as confirmed', async () => {
    const { client } = service
    const email = 'hopper@example.com'
    await client.succeed(contract.domains.create, { body: { name: 'asking.test' } })
    await page.goto(`${root}/audiences`)
    await page.getByRole('button', { name: 'Create audience' }).first().click()
    await dialog.getByLabel('Name').fill('Asking')
    await dialog.getByLabel('People confirm before they get anything').check()
    await dialog.getByLabel('From').fill('news@nobodys.example')
    await dialog.getByRole('button', { name: 'Create audience' }).click()
    await dialog.getByText('Must be at a verified sending domain of the account').waitFor()
    await dialog.getByLabel('From').fill('Acme <news@asking.test>')
    await dialog.getByLabel('Subject').fill('Is that you?')
    expect(await accessibilityFaults(page)).toEqual([])
    await dialog.getByRole('button', { name: 'Create audience' }).click()
    await main.getByText('People who are added confirm first, by an email from Acme <news@asking.test>.').waitFor()

    await main.getByRole('button', { name: 'Add contact' }).click()
    await dialog.getByLabel('Email').fill(email)
    await dialog.getByRole('button', { name: 'Add contact' }).click()
    await main.getByRole('cell', { name: 'Pending' }).waitFor()
    await choose(`Actions for ${email}`, 'Send the confirmation again')
    await dialog.getByRole('button', { name: 'Send the confirmation again' }).click()
    await dialog.getByText(/less than 10 minutes ago/).waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    const { data } = await client.succeed(contract.emails.list, { query: { recipient: email } })
    expect(data.map(({ subject }) => subject)).toEqual(['Is that you?'])
    await choose(`Actions for ${email}`, 'Mark as confirmed')
    await dialog.getByRole('button', { name: 'Mark as confirmed' }).click()
    await main.getByRole('cell', { name: 'Active' }).waitFor()

    await main.getByRole('button', { name: 'Edit', exact: true }).click()
    await dialog.getByLabel('People confirm before they get anything').uncheck()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await main.getByText('People who are added confirm first').waitFor({ state: 'detached' })

    // Other tests count what there is.
    const [audience] = (await client.succeed(contract.audiences.list, { query: {} })).data
    await client.succeed(contract.audiences.delete, { params: { id: audience?.id ?? '' } })
    const [person] = (await client.succeed(contract.subscribers.list, { query: { email } })).data
    await client.succeed(contract.subscribers.delete, { params: { id: person?.id ?? '' } })
  })

  test('the screen of a subscriber shows audiences, emails and why the address is suppressed, and changes them', async () => {
    const { client } = service
    await client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    const send = (to: string, subject: string) =>
      client.succeed(contract.emails.send, { body: { from: 'hello@shop.test', to, subject, text: 'Hello' } })
    await send(address, 'To this person')
    await send('bounced@simulator.test', 'To another one')
    await client.succeed(contract.suppressions.create, { body: { address } })

    await page.goto(`${root}/subscribers/${(await subscriber()).id}`)
    await main.getByRole('link', { name: 'To this person', exact: true }).waitFor()
    expect(await main.innerText()).not.toContain('To another one')
    const notice = main.getByRole('note')
    await notice.getByText('This address is suppressed').waitFor()
    expect(await notice.innerText()).toContain('Added by hand')
    await notice.getByRole('button', { name: 'Write to it again' }).click()
    await dialog.getByRole('button', { name: 'Remove it from the list' }).click()
    await notice.waitFor({ state: 'detached' })
    expect((await client.succeed(contract.suppressions.list, { query: { address } })).data).toEqual([])

    await main.getByRole('button', { name: 'Add to an audience' }).click()
    await dialog.getByRole('button', { name: 'Add to the audience' }).click()
    await dialog.getByText('Choose an audience').waitFor()
    await dialog.getByLabel('Audience').selectOption('Monthly news')
    await dialog.getByRole('button', { name: 'Add to the audience' }).click()
    await main.getByRole('link', { name: 'Monthly news' }).waitFor()

    await choose('More', 'Unsubscribe')
    await dialog.getByRole('button', { name: 'Unsubscribe' }).click()
    await main.locator('.subtitle', { hasText: 'Unsubscribed' }).waitFor()
    await main.getByRole('cell', { name: 'Unsubscribed' }).waitFor()
    await choose('More', 'Subscribe again')
    await dialog.getByRole('button', { name: 'Subscribe again' }).click()
    await main.locator('.subtitle', { hasText: 'Active' }).waitFor()
    // In the audience they stay unsubscribed until they are subscribed there.
    expect(await audiencesOfSubscriber()).toMatchObject([{ audienceName: 'Monthly news', status: 'unsubscribed' }])
    await choose('Actions for Monthly news', 'Subscribe again')
    await dialog.getByRole('button', { name: 'Subscribe again' }).click()
    await main.getByRole('cell', { name: 'Active' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
  })

  test('an unsubscribing cannot be taken back in test mode, and the menu says so', async () => {
    const { id } = await service.client.succeed(contract.subscribers.create, { body: { email: 'left@example.com' } })
    await service.client.succeed(contract.subscribers.unsubscribe, { params: { id }, body: {} })
    await page.goto(`/app/${service.accountId}/test/subscribers/${id}`)
    await main.getByRole('button', { name: 'More' }).click()
    expect(await page.getByRole('menuitem', { name: 'Subscribe again (in live mode)' }).isDisabled()).toBe(true)
  })

  test('the screen of a subscriber is as wide as a phone, in its menus too', async () => {
    const {
      page: small,
      context,
      complaints,
    } = await world.open({
      viewport: phone,
    })
    const long = `${'x'.repeat(60)}@${'long-name.'.repeat(10)}example`
    const { id } = await service.client.succeed(contract.subscribers.create, { body: { email: long } })
    await small.goto(`${root}/subscribers/${id}`)
    await shown(small)
    expect(await accessibilityFaults(small)).toEqual([])
    await small.getByRole('button', { name: 'More' }).click()
    await small.getByRole('menuitem', { name: 'Delete' }).click()
    await small.getByRole('dialog').getByRole('textbox').waitFor()
    expect(await small.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    expect(complaints).toEqual([])
    await context.close()
  })

  test('an address is suppressed, found by its beginning, and removed from the list', async () => {
    await page.goto(`${root}/suppressions`)
    await page.getByRole('button', { name: 'Suppress an address' }).first().click()
    await dialog.getByLabel('Address').fill('gone@example.com')
    await dialog.getByRole('button', { name: 'Suppress it' }).click()
    await main.getByRole('cell', { name: 'gone@example.com', exact: true }).waitFor()
    await search('here')
    await page.getByRole('heading', { name: 'No address fits these filters' }).waitFor()
    await search('GONE')
    await main.getByRole('button', { name: 'Remove gone@example.com' }).click()
    await dialog.getByRole('button', { name: 'Remove it from the list' }).click()
    await page.getByRole('heading', { name: 'No address fits these filters' }).waitFor()
  })

  test('what is deleted has to be named: a subscriber by the address, an audience by the name', async () => {
    const { id } = await subscriber()
    await page.goto(`${root}/subscribers/${id}`)
    await choose('More', 'Delete')
    const removeSubscriber = dialog.getByRole('button', { name: 'Delete the subscriber' })
    expect(await removeSubscriber.isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill(address)
    await removeSubscriber.click()
    await page.getByRole('heading', { level: 1, name: 'Subscribers' }).waitFor()
    await main.getByRole('link', { name: 'grace@example.com' }).waitFor()
    // The list that was read before may be shown for a moment.
    await main.getByRole('link', { name: address }).waitFor({ state: 'detached' })
    await page.goto(`${root}/subscribers/${id}`)
    await page.getByRole('heading', { name: 'There is no such subscriber' }).waitFor()

    await page.goto(`${root}/audiences`)
    await choose('Actions for Monthly news', 'Delete')
    const removeAudience = dialog.getByRole('button', { name: 'Delete the audience' })
    expect(await removeAudience.isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill('Monthly news')
    await removeAudience.click()
    await page.getByRole('heading', { name: 'No audiences yet' }).waitFor()
  })

  test('the screens of people broke no rule of the Content-Security-Policy, and asked no other server', () => {
    expect(opened.complaints).toEqual([])
  })
})
