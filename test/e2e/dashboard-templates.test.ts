import type { Locator, Page, Route } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, phone, shown } from '../support/dashboard.ts'
import { signUp } from '../support/people.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import type { TestService } from '../support/service.ts'
import { createDashboardWorld, type DashboardWorld, type OpenedDashboard } from '../support/worlds/dashboard.ts'

describeInBrowser('templates in the dashboard', { timeout: 90_000 }, () => {
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

  const add = async (fields: object = {}) => {
    const body = { name: 'Receipt', subject: 'Your receipt', html: '<p>Thank you</p>', ...fields }
    return (await service.client.succeed(contract.templates.create, { body })).id
  }
  const read = (id: string) => service.client.succeed(contract.templates.get, { params: { id } })
  const idShown = () => new URL(page.url()).pathname.split('/').at(-1) ?? ''
  const field = (name: string) => main.getByRole('textbox', { name, exact: true })
  const preview = () => page.frameLocator('iframe')
  const saved = () => main.getByText('Draft saved', { exact: true }).waitFor()

  test('a template is created, written with a live preview, published, changed and deleted', async () => {
    await page.goto(`${root}/templates`)
    await page.getByRole('heading', { name: 'No templates yet' }).waitFor()
    await keepScreenshots(page, 'empty-templates')
    expect(await accessibilityFaults(page)).toEqual([])
    await main.getByRole('button', { name: 'Create template' }).first().click()
    await dialog.getByLabel('Name').fill('Welcome')
    await dialog.getByLabel('Subject').fill('Welcome, {{ firstName }}')
    await dialog.getByRole('button', { name: 'Create template' }).click()
    await page.getByRole('heading', { level: 1, name: 'Welcome' }).waitFor()
    await preview().getByText('Hello there,').waitFor()
    await main.getByText('Welcome, there').waitFor()
    await main.getByText('Never published').waitFor()

    await field('HTML').fill('<h1>Good day {{ firstName }}</h1>')
    await preview().getByRole('heading', { name: 'Good day there' }).waitFor()
    await saved()
    const id = idShown()
    expect(await read(id)).toMatchObject({ html: '<h1>Good day {{ firstName }}</h1>', publishedVersion: null })

    await main.getByRole('button', { name: 'Publish', exact: true }).click()
    await dialog.getByRole('heading', { name: 'Publish Welcome?' }).waitFor()
    await dialog.getByRole('button', { name: 'Publish version 1' }).click()
    await main.getByText('Published', { exact: true }).first().waitFor()
    expect(await main.getByRole('button', { name: 'Publish', exact: true }).isDisabled()).toBe(true)

    await field('Subject').fill('Good to see you')
    await main.getByText('Changed', { exact: true }).waitFor()
    await saved()
    expect(await read(id)).toMatchObject({
      subject: 'Good to see you',
      publishedVersion: 1,
      hasUnpublishedChanges: true,
    })

    await main.getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    const remove = dialog.getByRole('button', { name: 'Delete the template' })
    expect(await remove.isDisabled()).toBe(true)
    await dialog.getByRole('textbox').fill('Welcome')
    await remove.click()
    await page.getByRole('heading', { name: 'No templates yet' }).waitFor()
  })

  test('a fault in line 3 stands at its field, marks the line and leads there, and goes when it is mended', async () => {
    await page.goto(`${root}/templates/${await add({ name: 'Faulty' })}`)
    await preview().getByText('Thank you').waitFor()
    await field('HTML').fill('<p>One</p>\n<p>Two</p>\n<p>{{ total | money }}</p>\n<p>Four</p>')
    const line = main.getByRole('button', { name: 'Line 3' })
    await line.waitFor()
    expect(await main.locator('.code-mark').allInnerTexts()).toEqual(['3'])
    expect(await field('HTML').getAttribute('aria-invalid')).toBe('true')
    await main.getByText('A fault keeps it from being rendered').waitFor()
    await keepScreenshots(page, 'template-with-a-fault')
    expect(await accessibilityFaults(page)).toEqual([])
    await line.click()
    const selected = await field('HTML').evaluate(
      (area: { value: string; selectionStart: number; selectionEnd: number }) =>
        area.value.slice(area.selectionStart, area.selectionEnd),
    )
    expect(selected).toBe('<p>{{ total | money }}</p>')
    await main.getByRole('button', { name: 'Publish', exact: true }).click()
    await dialog.getByRole('button', { name: /Publish version/ }).click()
    await dialog.getByRole('alert').waitFor()
    expect(await dialog.getByRole('alert').innerText()).toContain('line 3')
    await dialog.getByRole('button', { name: 'Cancel' }).click()

    await field('HTML').fill('<p>{{ total }} Euro</p>')
    await preview().getByText('Euro').waitFor()
    expect(await line.count()).toBe(0)
    expect(await main.locator('.code-mark').count()).toBe(0)
  })

  test('the preview shows given values, on desktop and phone, and notes what is not good', async () => {
    const html = '<p>Hello {{ name }}</p>{% for step in steps %}<li>{{ step }}</li>{% endfor %}'
    const variables = [
      { name: 'name', type: 'string' },
      { name: 'steps', type: 'list' },
    ]
    await page.goto(`${root}/templates/${await add({ html, variables })}`)
    await preview().getByText('Hello Sample').waitFor()
    await main.getByLabel('What is not good about it').getByText('unsubscribeUrl').waitFor()
    await field('Values for the preview').fill('{ "name": "Grace", ')
    await main.getByText('Must be an object in JSON').waitFor()
    await field('Values for the preview').fill('{ "name": "<b>Grace</b>", "steps": ["Sign in"] }')
    await preview().getByText('Hello <b>Grace</b>').waitFor()
    await preview().getByText('Sign in').waitFor()
    const width = async () => (await page.locator('iframe').boundingBox())?.width ?? 0
    expect(await width()).toBeGreaterThan(400)
    await main.getByLabel('Preview as').getByText('Phone').click()
    await expect.poll(width).toBe(390)
    await main.getByLabel('Preview as').getByText('Text').click()
    await main.getByText('Hello <b>Grace</b>').waitFor()
  })

  test('variables are declared at their own names; what the API refuses stands at its field and is not lost', async () => {
    const id = await add({ name: 'With variables' })
    await page.goto(`${root}/templates/${id}`)
    await main.getByRole('button', { name: 'Add a variable' }).click()
    await main.getByLabel('Name of variable 1').fill('Total')
    await main.getByText('Not saved', { exact: true }).waitFor()
    await main.getByText('Must begin with a lower-case letter').waitFor()
    await main.getByLabel('Name of Total').fill('total')
    await saved()
    await main.getByLabel('Type of total').selectOption('number')
    await main.getByLabel('Fallback of total').fill('many')
    await main.getByText('Must be a number').waitFor()

    // A warning opens before the page leaves changes that are not saved.
    await page.getByRole('link', { name: 'Emails', exact: true }).click()
    await dialog.getByText('The last changes of the template were not saved').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await main.getByLabel('Fallback of total').fill('12')
    await saved()
    expect((await read(id)).variables).toEqual([{ name: 'total', type: 'number', required: false, fallback: 12 }])
    await main.getByRole('button', { name: 'Remove total' }).click()
    await expect.poll(async () => (await read(id)).variables).toEqual([])
  })

  test('what was typed a moment before another screen is opened is saved', async () => {
    const id = await add({ name: 'Left' })
    await page.goto(`${root}/templates/${id}`)
    await field('Subject').fill('Typed at the end')
    await page.getByRole('link', { name: 'Emails', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'Emails' }).waitFor()
    await expect.poll(async () => (await read(id)).subject).toBe('Typed at the end')
  })

  test('a template is written in MJML, with its faults by line, and its preview when they are gone', async () => {
    const id = await add({ name: 'News', subject: 'News' })
    await page.goto(`${root}/templates/${id}`)
    await preview().getByText('Thank you').waitFor()
    await main.getByText('MJML', { exact: true }).click()
    await dialog.getByRole('heading', { name: 'Replace the HTML?' }).waitFor()
    await dialog.getByRole('button', { name: 'Replace it' }).click()
    await preview().getByText('Write your message here.').waitFor()
    const column = (inner: string) =>
      `<mjml>\n<mj-body>\n<mj-section>\n<mj-column>\n${inner}\n</mj-column>\n</mj-section>\n</mj-body>\n</mjml>`
    await field('MJML').fill(column('<mj-text foo="1">Hello</mj-text>'))
    await main.getByText('Attribute foo is illegal').first().waitFor()
    await main.getByRole('button', { name: 'Line 5' }).click()
    expect(await accessibilityFaults(page)).toEqual([])
    await field('MJML').fill(column('<mj-text>Hello {{ name }}</mj-text>'))
    await preview().getByText('Hello', { exact: true }).waitFor()
    await saved()
    expect(await read(id)).toMatchObject({
      mjml: column('<mj-text>Hello {{ name }}</mj-text>'),
      html: expect.stringContaining('Hello {{ name }}'),
    })
  })

  test('a viewer reads a template with its preview and cannot write, and in test mode nothing is published', async () => {
    const id = await add({ name: 'Read' })
    const viewer = await signUp(service, { role: 'viewer' })
    const { page: theirs, context, complaints } = await world.open({ person: viewer })
    await theirs.goto(`${root}/templates/${id}`)
    await theirs.frameLocator('iframe').getByText('Thank you').waitFor()
    expect(await theirs.getByRole('textbox', { name: 'HTML', exact: true }).getAttribute('readonly')).not.toBeNull()
    for (const name of ['Publish', 'More', 'Add a variable']) {
      expect(await theirs.getByRole('main').getByRole('button', { name, exact: true }).count(), name).toBe(0)
    }
    expect(await accessibilityFaults(theirs)).toEqual([])
    expect(complaints).toEqual([])
    await context.close()

    await page.goto(`/app/${service.accountId}/test/templates/${id}`)
    const publish = main.getByRole('button', { name: 'Publish (in live mode)' })
    await publish.waitFor()
    expect(await publish.isDisabled()).toBe(true)
  })

  test('the versions of a template are listed, the newest first, and what emails get is shown beside a draft that differs', async () => {
    const id = await add({ name: 'Versions', subject: '<b>One</b>' })
    await page.goto(`${root}/templates/${id}`)
    await main.getByText('None yet. Emails can be sent with it once').waitFor()
    await main.getByRole('button', { name: 'Publish', exact: true }).click()
    await dialog.getByRole('button', { name: 'Publish version 1' }).click()
    const rows = main.getByRole('table', { name: 'Versions' }).getByRole('row')
    await rows.filter({ hasText: '<b>One</b>' }).getByText('Published').waitFor()

    for (const version of [2, 3, 4, 5, 6, 7]) {
      const body = { subject: `Number ${version}`, html: `<p>What emails get: ${version}</p>` }
      await service.client.succeed(contract.templates.update, { params: { id }, body })
      await service.client.succeed(contract.templates.publish, { params: { id }, body: {} })
    }
    await service.client.succeed(contract.templates.update, { params: { id }, body: { html: '<p>The draft</p>' } })
    await page.reload()
    await preview().getByText('The draft').waitFor()
    await rows.filter({ hasText: 'Number 7' }).waitFor()
    expect(await rows.count()).toBe(6)
    await keepScreenshots(page, 'template-versions')
    await main.getByRole('button', { name: 'Show all 7' }).press('Enter')
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Versions of the template')
    const words = await rows.allInnerTexts()
    expect(words.slice(1).map((row) => row.replaceAll(/\s+/g, ' '))).toEqual([
      expect.stringContaining('7 Number 7 Published'),
      ...[6, 5, 4, 3, 2].map((version) => expect.stringContaining(`${version} Number ${version} Replaced`)),
      expect.stringContaining('1 <b>One</b> Replaced'),
    ])

    // Another is published while the screen says 7.
    const publishing = async (route: Route) => {
      await service.client.succeed(contract.templates.update, { params: { id }, body: { subject: 'Number 8' } })
      await service.client.succeed(contract.templates.publish, { params: { id }, body: {} })
      await route.continue()
    }
    await page.route('**/v1/templates/*/render', publishing, { times: 1 })
    await main.getByRole('button', { name: 'Show version 7' }).click()
    const shownNow = page.getByRole('dialog', { name: 'Version 8 (published)' })
    await shownNow.frameLocator('iframe').getByText('The draft').waitFor()
    await shownNow.getByText('Number 8').waitFor()
    await keepScreenshots(page, 'template-version')
    expect(await accessibilityFaults(page)).toEqual([])
  })

  test('the fields of a template stand one below the other on a phone, as wide as it', async () => {
    const { page: small, context } = await world.open({
      viewport: phone,
      colorScheme: 'dark',
    })
    const variables = [{ name: 'firstName', type: 'string', fallback: 'there' }]
    const html = `<p>${'A long line of HTML. '.repeat(30)}</p>`
    const id = await add({ name: 'x'.repeat(200), subject: 'y'.repeat(300), html, variables })
    await service.client.succeed(contract.templates.publish, { params: { id }, body: {} })
    await small.goto(`${root}/templates/${id}`)
    await shown(small)
    await small.locator('iframe').waitFor()
    await keepScreenshots(small, 'template-on-a-phone')
    await small.getByRole('table', { name: 'Versions' }).scrollIntoViewIfNeeded()
    await keepScreenshots(small, 'template-versions-on-a-phone')
    expect(await small.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    expect(await accessibilityFaults(small)).toEqual([])
    await context.close()
  })

  test('the screens of templates broke no rule of the Content-Security-Policy, and asked no other server', () => {
    expect(opened.complaints).toEqual([])
  })
})
