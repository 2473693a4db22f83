import type { Locator } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { firstMjml } from '../../server/dashboard/components/blocks/mail-blocks.ts'
import { describeInBrowser } from '../support/browser.ts'
import { accessibilityFaults, phone, shown } from '../support/dashboard.ts'
import { signUp } from '../support/people.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { createDashboardWorld, type DashboardWorld, type OpenedDashboard } from '../support/worlds/dashboard.ts'

describeInBrowser('a message of blocks in the dashboard', { timeout: 120_000 }, () => {
  let world: DashboardWorld

  beforeAll(async () => {
    world = await createDashboardWorld()
  })
  afterAll(() => world?.[Symbol.asyncDispose]())

  const add = async (fields: object = {}) => {
    const body = { name: 'News', subject: 'News', html: '<p>News</p>', ...fields }
    return (await world.service.client.succeed(contract.templates.create, { body })).id
  }
  const read = (id: string) => world.service.client.succeed(contract.templates.get, { params: { id } })
  /** Goes on with blocks in place of the HTML. */
  async function toBlocks({ main, dialog }: Pick<OpenedDashboard, 'main' | 'dialog'>): Promise<void> {
    await main.getByText('Blocks', { exact: true }).click()
    await dialog.getByRole('button', { name: 'Replace it' }).click()
  }
  const saved = (main: Locator) => main.getByText('Draft saved', { exact: true }).waitFor()

  test('a message of blocks is written, moved, previewed and saved as MJML, and found again as it was', async () => {
    const id = await add({ variables: [{ name: 'firstName', type: 'string', fallback: 'you' }] })
    const opened = await world.openScreen(`templates/${id}`)
    const { page, main, context, complaints } = opened
    const preview = page.frameLocator('iframe')
    await toBlocks(opened)
    await preview.getByText('Write your message here.').waitFor()
    const first = main.getByRole('listitem', { name: 'Heading, 1 of 3' })
    await first.getByLabel('Text').fill('Spring for {{ firstName | default: "you & <all>" }}')
    await preview.getByRole('heading', { name: 'Spring for you' }).waitFor()

    const text = main.getByRole('listitem', { name: 'Text, 2 of 3' })
    await text.getByRole('textbox', { name: 'Text' }).click()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('Dear {{ firstName }} & <friends>')
    await page.keyboard.press('ControlOrMeta+A')
    await text.getByRole('button', { name: 'Bold' }).click()
    await preview.locator('strong', { hasText: 'Dear you & <friends>' }).waitFor()

    await main.getByRole('button', { name: 'Add block' }).click()
    await page.getByRole('menuitem', { name: 'Button' }).click()
    const added = main.getByRole('listitem', { name: 'Button, 4 of 4' })
    await main.locator('li:focus').and(added).waitFor()
    await added.getByLabel('Label').fill('Read on')
    await added.getByLabel('Leads to').fill('https://shop.test/spring')
    await added.getByRole('button', { name: 'Move up' }).press('Enter')
    await main.getByRole('listitem', { name: 'Button, 3 of 4' }).waitFor()
    // The focus is where it was, so that the next press goes on.
    await page.keyboard.press('Enter')
    await main.getByRole('listitem', { name: 'Button, 2 of 4' }).waitFor()
    await main.getByText('Button: 2 of 4', { exact: true }).waitFor({ state: 'attached' })
    expect(await preview.getByRole('link', { name: 'Read on' }).getAttribute('href')).toBe('https://shop.test/spring')

    await saved(main)
    await keepScreenshots(page, 'blocks')
    expect(await accessibilityFaults(page)).toEqual([])
    const { mjml } = await read(id)
    expect(mjml).toContain('<h1>Spring for {{ firstName | default: "you & <all>" }}</h1>')
    expect(mjml).toContain('<p><strong>Dear {{ firstName }} &amp; &lt;friends&gt;</strong></p>')
    await main.getByText('MJML', { exact: true }).click()
    expect(await main.getByRole('textbox', { name: 'MJML', exact: true }).inputValue()).toBe(mjml)
    expect(complaints).toEqual([])
    await context.close()
  })

  test('MJML of blocks is shown as blocks, and the address of a link that is Liquid stays when its text is changed', async () => {
    const id = await add({ html: undefined, mjml: firstMjml })
    const { page, main, context, complaints } = await world.openScreen(`templates/${id}`)
    const text = main.getByRole('listitem', { name: 'Text, 3 of 3' })
    await text.getByRole('textbox', { name: 'Text' }).click()
    await page.keyboard.press('ControlOrMeta+End')
    await page.keyboard.type(' or write to us.')
    await page.frameLocator('iframe').getByText('or write to us.').waitFor()
    await saved(main)
    expect((await read(id)).mjml).toMatch(/<p><a href="{{ unsubscribeUrl }}">Unsubscribe.* or write to us\./)
    await text.getByRole('button', { name: 'Remove: Text' }).click()
    await main.getByRole('listitem', { name: 'Text, 2 of 2' }).waitFor()
    // "Draft saved" may be that of before still.
    await expect.poll(async () => (await read(id)).mjml).not.toContain('unsubscribeUrl')
    expect(complaints).toEqual([])
    await context.close()
  })

  test('a link is set and changed by its address, and what blocks cannot keep of a pasted text is dropped at once', async () => {
    const id = await add({ html: undefined, mjml: firstMjml })
    const { page, main, context, complaints } = await world.openScreen(`templates/${id}`)
    const text = main.getByRole('listitem', { name: 'Text, 2 of 3' })
    await text.getByRole('textbox', { name: 'Text' }).click()
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('Spring')
    await page.keyboard.press('ControlOrMeta+A')
    await text.getByRole('button', { name: 'Link', exact: true }).click()
    const address = page.getByLabel('Leads to')
    await address.fill('javascript:alert(1)')
    await address.press('Enter')
    await page.getByText('Must be an address such as').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    await address.fill('https://shop.test/spring')
    await page.getByRole('button', { name: 'Set', exact: true }).click()
    await address.waitFor({ state: 'detached' })
    const link = '<p><a href="https://shop.test/spring">Spring</a></p>'
    await expect.poll(async () => (await read(id)).mjml).toContain(link)

    const pasted =
      '<p><a href="https://a.test" target="_blank" class="x">A</a><u>b</u></p><ol start="3"><li>c</li></ol>'
    await text.getByRole('textbox', { name: 'Text' }).click()
    await page.evaluate(`(() => {
      const clipboardData = new DataTransfer()
      clipboardData.setData('text/html', ${JSON.stringify(pasted)})
      document.activeElement.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
    })()`)
    await page.frameLocator('iframe').getByText('c', { exact: true }).waitFor()
    await saved(main)
    await page.reload()
    await shown(page)
    await text.getByRole('listitem').getByText('c', { exact: true }).waitFor()
    expect((await read(id)).mjml).toContain('<a href="https://a.test">A</a>b')
    expect(complaints).toEqual([])
    await context.close()
  })

  test('a block that is wrong says so where it stands, and so does a message without any', async () => {
    const opened = await world.openScreen(`templates/${await add()}`)
    const { page, main, context } = opened
    await toBlocks(opened)
    const heading = main.getByRole('listitem', { name: 'Heading, 1 of 3' })
    await heading.getByLabel('Text').fill('Hello {% if firstName %}')
    await heading.getByRole('alert').waitFor()
    expect(await main.getByRole('listitem').getByRole('alert').count()).toBe(1)
    await heading.getByLabel('Text').fill('Hello')
    await heading.getByRole('alert').waitFor({ state: 'detached' })
    await main.getByRole('button', { name: 'Add block' }).click()
    await page.getByRole('menuitem', { name: 'Image' }).click()
    const image = main.getByRole('listitem', { name: 'Image, 4 of 4' })
    await image.getByText('Is needed: without an address').waitFor()
    await image.getByLabel('Address of the image').fill('https://shop.test/a.png')
    await image.getByText('Is needed: without an address').waitFor({ state: 'detached' })
    for (const left of [3, 2, 1, 0]) {
      await main.getByRole('button', { name: 'Remove: ' }).first().click()
      await expect.poll(() => main.locator('.blocks > li').count()).toBe(left)
    }
    await main.getByText('There is no block yet').waitFor()
    await main.locator('button:focus', { hasText: 'Add block' }).waitFor()
    await context.close()
  })

  test('MJML that has more than blocks can show is kept until it is replaced on purpose', async () => {
    const mjml = '<mjml><mj-body><mj-section><mj-column><mj-raw><hr></mj-raw></mj-column></mj-section></mj-body></mjml>'
    const id = await add({ html: undefined, mjml })
    const { main, dialog, context } = await world.openScreen(`templates/${id}`)
    await main.getByRole('textbox', { name: 'MJML', exact: true }).waitFor()
    await main.getByText('Blocks', { exact: true }).click()
    await main.getByText('This MJML has more than blocks can show').waitFor()
    expect((await read(id)).mjml).toBe(mjml)
    await main.getByRole('button', { name: 'Replace it' }).click()
    await dialog.getByRole('button', { name: 'Replace it' }).click()
    await main.getByRole('listitem', { name: 'Heading, 1 of 3' }).waitFor()
    await expect.poll(async () => (await read(id)).mjml).toContain('<h1>Heading</h1>')
    await context.close()
  })

  test('a message of blocks fits on a phone, and who may not write reads it', async () => {
    const id = await add()
    const writer = await world.openScreen(`templates/${id}`, { viewport: phone, colorScheme: 'dark' })
    await toBlocks(writer)
    await writer.main.getByRole('listitem', { name: 'Text, 3 of 3' }).waitFor()
    await saved(writer.main)
    await keepScreenshots(writer.page, 'blocks')
    expect(await accessibilityFaults(writer.page)).toEqual([])
    expect(await writer.page.evaluate('document.documentElement.scrollWidth')).toBe(phone.width)
    await writer.context.close()

    const person = await signUp(world.service, { role: 'viewer' })
    const { main, context } = await world.openScreen(`templates/${id}`, { person })
    await main.getByRole('listitem', { name: 'Text, 2 of 3' }).getByText('Write your message here.').waitFor()
    expect(await main.getByRole('button', { name: /^(Add block|Remove|Move|Bold)/ }).count()).toBe(0)
    expect(await main.locator('[contenteditable="true"]').count()).toBe(0)
    await context.close()
  })
})
