import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import type { Mode } from '../../contract/mode.ts'
import { createAccountService } from '../../server/accounts/service.ts'
import { previewLimit } from '../../server/dashboard/screens/emails/preview-html.ts'
import { describeInBrowser, startBrowser, type TestBrowser } from '../support/browser.ts'
import {
  accessibilityFaults,
  desktop,
  openByLink,
  openDashboard,
  phone,
  screenFaults,
  shown,
} from '../support/dashboard.ts'
import { type EmptyList, emptyLists, neverEmpty, saysMode, writeEmptyParts } from '../support/empty-lists.ts'
import { failingParts, openFailing } from '../support/failing-screens.ts'
import { type HostileAccount, hostileScreens, writeHostileAccount } from '../support/hostile-account.ts'
import { script } from '../support/hostile-email.ts'
import { watchShifts } from '../support/layout-shifts.ts'
import { type Person, signUp } from '../support/people.ts'
import { answer, type Receiver, startReceiver } from '../support/receiver.ts'
import { keepScreenshots } from '../support/screenshots.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** Of the paths of screens with an id in it, those of what belongs to one mode. */
const ofOneMode = /^(emails|campaigns|captured|inbound-messages|webhooks|events|logs|imports)\//

/** How far a screen may move while it is read. Web Vitals takes 0.1 for good. */
const mostMoved = 0.1

describeInBrowser('each screen of the dashboard', { timeout: 120_000 }, () => {
  let service: TestService
  let chromium: TestBrowser
  let receiver: Receiver
  let person: Person
  /** Every screen with something on it, by its path below the account and the mode. */
  let screens: string[]
  let written: HostileAccount

  beforeAll(async () => {
    ;[service, chromium, receiver] = await Promise.all([
      startTestService({ maxEmailBodyBytes: 2_000_000 }),
      startBrowser(),
      startReceiver(),
    ])
    receiver.respond(answer(500, { body: script }))
    person = await signUp(service)
    written = await writeHostileAccount(service, { person, receiver })
    screens = hostileScreens(written)
  })
  afterAll(async () => {
    await chromium?.[Symbol.asyncDispose]()
    await service?.stop()
    await receiver?.stop()
  })

  /** Creates another account. Returns its id. */
  async function createAccount(name: string): Promise<string> {
    const accounts = createAccountService({ clock: service.clock })
    return (await accounts.create(service.database.db, { name, plan: 'free' })).id
  }

  // A third of the screens at a time, so that a test stays short however many there are.
  test.each(
    [1, 2, 3].flatMap(
      (third) =>
        [
          { third, colorScheme: 'light', viewport: desktop },
          { third, colorScheme: 'dark', viewport: phone },
        ] as const,
    ),
  )(
    'each screen of the dashboard in $colorScheme, $viewport.width pixels wide, part $third: axe finds nothing, no script of a field runs, nothing breaks the policy',
    async ({ third, colorScheme, viewport }) => {
      const { page, context, complaints } = await openDashboard(chromium.browser, service, {
        person,
        colorScheme,
        viewport,
      })
      const shiftsOf = await watchShifts(page)
      const faults: string[] = []
      for (const [index, screen] of screens.entries()) {
        if (index % 3 !== third - 1) continue
        const path = `/app/${service.accountId}/live/${screen}`
        // Each is loaded with its page in one of the colour schemes, and opened by a link in the other.
        const isLoaded = (index % 2 === 0) === (colorScheme === 'light')
        await (isLoaded ? page.goto(path) : openByLink(page, path))
        await shown(page)
        const { moved, shifts } = await shiftsOf()
        if (moved > mostMoved) faults.push(`${screen}: it moves by ${moved}: ${shifts}`)
        await keepScreenshots(page, `${String(index + 1).padStart(2, '0')}-${screen}`)
        faults.push(...(await screenFaults(page)).map((fault) => `${screen}: ${fault}`))
        expect(await page.evaluate('document.documentElement.scrollWidth'), screen).toBe(viewport.width)
        expect(await page.title()).toMatch(/ · Ours · Postern$/)
        expect(await page.getByRole('alert').count(), screen).toBe(0)
      }
      expect(faults).toEqual([])
      expect(complaints).toEqual([])
      await context.close()
    },
  )

  test('a part whose request hangs keeps nothing else from the screen', async () => {
    const { page, context } = await openDashboard(chromium.browser, service, { person })
    await page.route('**/v1/segments?**', () => undefined)
    await page.goto(`/app/${service.accountId}/live/audiences/${written.audience}`)
    await page.getByRole('main').getByText('ada@example.com').waitFor()
    await context.close()
  })

  test('what others have written is shown as text: the words of mail servers, names, headers, browsers and addresses', async () => {
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    const main = page.getByRole('main')
    const quoted = script.replaceAll('"', "'")
    const open = async (screen: string) => {
      await openByLink(page, `/app/${service.accountId}/live/${screen}`)
      await shown(page)
    }
    await open(`emails/${written.email}`)
    const reply = await page.locator('.timeline .reply').last().innerText()
    expect(reply).toBe(`${script}: ${script}`)
    const bounced = page.getByRole('row').filter({ hasText: 'bounced@simulator.test' })
    expect(await bounced.innerText()).toContain(quoted)
    expect(await bounced.innerText()).toContain(script)
    await open(`domains/${written.domain}/deliverability`)
    expect(await page.getByRole('row').last().innerText()).toContain(script)
    await open('settings/sessions')
    expect(await page.getByRole('table').innerText()).toContain(script)
    await open(`webhooks/${written.webhook}`)
    expect(await page.getByRole('heading', { level: 1 }).innerText()).toContain(encodeURIComponent(script))

    for (const [screen, views] of [
      [`emails/${written.email}`, ['Text', 'More']],
      [`captured/${written.captured}`, ['Headers', 'Source']],
      [`inbound-messages/${written.inbound}`, ['Headers', 'Source']],
      [`campaigns/${written.draft}`, ['Text']],
      [`campaigns/${written.draft}/edit`, ['Text']],
      [`templates/${written.template}`, ['Text']],
    ] as const) {
      await open(screen)
      for (const view of views) {
        await main.locator('.mantine-SegmentedControl-root').getByText(view, { exact: true }).click()
        await main.getByText(script).last().waitFor()
        await keepScreenshots(page, `hostile-${screen}-${view}`)
      }
    }
    expect(complaints).toEqual([])

    for (const screen of [
      `emails/${written.hostileEmail}`,
      `captured/${written.hostileCaptured}`,
      `inbound-messages/${written.hostileInbound}`,
    ]) {
      await open(screen)
      for (const view of await main.getByRole('radiogroup', { name: 'View' }).locator('label').all()) await view.click()
      await main.getByText('Links', { exact: true }).click()
      expect(await main.locator('.links a').getAttribute('href')).toBe('https://tracker.example/i')
    }
    expect(await page.title()).toMatch(/ · Ours · Postern$/)
    expect(complaints.filter((complaint) => complaint.includes('is not ours'))).toEqual([])
    await context.close()
  })

  test('each screen says that there is no such thing for an id of another account or of the other mode, and shows nothing of it', async () => {
    const theirs = await createAccount('Theirs')
    const stranger = await signUp(service, { accountId: theirs })
    const withId = screens.filter((screen) => /_[0-9a-z]{26}/.test(screen))
    expect(withId.length).toBeGreaterThan(15)
    for (const [who, scope] of [
      [stranger, `${theirs}/live`],
      [person, `${service.accountId}/test`],
    ] as const) {
      const { page, context, complaints } = await openDashboard(chromium.browser, service, { person: who })
      for (const screen of scope.endsWith('test') ? withId.filter((screen) => ofOneMode.test(screen)) : withId) {
        await openByLink(page, `/app/${scope}/${screen}`)
        await page
          .getByText(/^There is no such /)
          .first()
          .waitFor()
        expect(await page.getByRole('main').innerText(), screen).not.toMatch(/owned|<img|ada@example|shop\.test/)
      }
      expect(complaints).toEqual([])
      await context.close()
    }
    const { page, context } = await openDashboard(chromium.browser, service, { person: stranger })
    await page.goto(`/app/${service.accountId}/live/emails`)
    await page.getByRole('heading', { name: 'Nothing is here' }).waitFor()
    await context.close()
  })

  test.each([
    { colorScheme: 'light', viewport: desktop },
    { colorScheme: 'dark', viewport: phone },
  ] as const)(
    'a page outside of an account, in $colorScheme, $viewport.width pixels wide: axe finds nothing',
    async ({ colorScheme, viewport }) => {
      const { page, context, complaints } = await openDashboard(chromium.browser, service, { colorScheme, viewport })
      const faults: string[] = []
      for (const path of [
        'sign-in',
        'forgot-password',
        `accept#token=${'x'.repeat(43)}`,
        'provider',
        'nowhere/at/all',
      ]) {
        // A change of the fragment alone would not load the page.
        await page.goto('about:blank')
        await page.goto(`/app/${path}`)
        await page.getByRole('heading', { level: 1 }).waitFor()
        await keepScreenshots(page, `outside-${path.split('#')[0]}`)
        faults.push(...(await accessibilityFaults(page)).map((fault) => `${path}: ${fault}`))
        expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBe(viewport.width)
      }
      expect(faults).toEqual([])
      expect(complaints).toEqual([])
      await context.close()
    },
  )

  test.each([
    ['Python', 'receiver.py', 'python3 receiver.py'],
    ['PHP', 'receiver.php', 'php -S 127.0.0.1:PORT receiver.php'],
  ])(
    'the receiver of a webhook in %s is that of the guide, run with its port and secret',
    async (language, file, run) => {
      const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
      const { data } = await service.client.succeed(contract.webhooks.list, { query: {} })
      await page.goto(`/app/${service.accountId}/live/webhooks/${data[0]?.id}`)
      await page.getByRole('link', { name: 'Code in Node, Python' }).click()
      await page.getByText(language, { exact: true }).click()
      const secret = `whsec_${'A'.repeat(43)}=`
      await page.getByLabel('Signing secret', { exact: true }).fill(secret)
      const port = new URL(receiver.url).port
      const [code, command] = await page.locator('pre.block').allTextContents()
      expect(code).toBe(await readFile(join(import.meta.dirname, '../../server/dashboard/receivers', file), 'utf8'))
      expect(command).toBe(`WEBHOOK_SECRET='${secret}' PORT=${port} ${run.replace('PORT', port)}`)
      await page.getByLabel('Signing secret', { exact: true }).fill("'; rm -rf ~")
      await page.getByText('A signing secret begins with').waitFor()
      expect(await page.locator('pre.block').last().textContent()).toContain("WEBHOOK_SECRET='whsec_…'")
      expect(complaints).toEqual([])
      await context.close()
    },
  )

  test('the event types have a receiver too, for a webhook that is not made yet', async () => {
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
    await page.goto(`/app/${service.accountId}/live/event-types`)
    await page.getByText('Ruby', { exact: true }).click()
    const [code, command] = await page.locator('pre.block').allTextContents()
    const file = join(import.meta.dirname, '../../server/dashboard/receivers/receiver.rb')
    expect(code).toBe(await readFile(file, 'utf8'))
    expect(command).toBe("WEBHOOK_SECRET='whsec_…' PORT=4000 ruby receiver.rb")
    await page.getByText('http://127.0.0.1:4000/hooks').waitFor()
    expect(complaints).toEqual([])
    await context.close()
  })

  test('each list of an account without anything says that it is empty and what to do next, in test mode too, and axe finds nothing', async () => {
    const accountId = await createAccount('Empty')
    const stranger = await signUp(service, { accountId })
    const { page, context, complaints } = await openDashboard(chromium.browser, service, { person: stranger })
    const faults: string[] = []
    async function isEmpty(mode: Mode, { path, title, hint }: EmptyList) {
      await openByLink(page, `/app/${accountId}/${mode}/${path}`)
      await shown(page)
      const empty = page.locator('.empty').filter({ has: page.getByRole('heading', { name: title, exact: true }) })
      expect(await empty.innerText(), path).toMatch(hint)
      await keepScreenshots(page, `empty-${mode}-${path}`)
      faults.push(...(await screenFaults(page)).map((fault) => `${path}: ${fault}`))
      expect(await page.getByRole('alert').count(), path).toBe(0)
    }
    const withoutId = screens.filter((screen) => !/_[0-9a-z]{26}/.test(screen))
    const listed = [...emptyLists('live').map(({ path }) => path), ...neverEmpty]
    expect(listed.toSorted()).toEqual(withoutId.toSorted())
    for (const mode of ['live', 'test'] as const) {
      for (const list of emptyLists(mode)) if (mode === 'live' || saysMode.test(list.path)) await isEmpty(mode, list)
    }
    await page.goto(`/app/${accountId}/live/overview`)
    await page.getByRole('heading', { name: 'First steps' }).waitFor()
    await page.getByRole('listitem').filter({ hasText: 'Publish its DNS records' }).getByRole('link').waitFor()
    for (const list of await writeEmptyParts(stranger, receiver.url)) await isEmpty('live', list)
    expect(faults).toEqual([])
    expect(complaints).toEqual([])
    await context.close()
  })

  test('each screen of which nothing can be read says so with a button to try again, and axe finds nothing', async () => {
    const { page, context, complaints } = await openFailing(chromium.browser, service, { person })
    const faults: string[] = []
    for (const screen of screens) {
      await openByLink(page, `/app/${service.accountId}/live/${screen}`)
      await shown(page)
      await page.getByRole('alert').getByRole('button', { name: 'Try again' }).first().waitFor()
      await keepScreenshots(page, `failing-${screen}`)
      faults.push(...(await screenFaults(page)).map((fault) => `${screen}: ${fault}`))
    }
    expect(faults).toEqual([])
    expect(complaints.filter((complaint) => !complaint.includes('status of 500'))).toEqual([])
    await context.close()
  })

  test('each part of a screen that cannot be read says so alone, and is read by its button', async () => {
    const { page, context, complaints, fail } = await openFailing(chromium.browser, service, { person })
    const faults: string[] = []
    for (const { screen, failing, alerts } of failingParts(written)) {
      fail(failing)
      await page.goto(`/app/${service.accountId}/live/${screen}`)
      const again = page.getByRole('alert').getByRole('button', { name: 'Try again' })
      await again.nth(alerts - 1).waitFor()
      await shown(page)
      await keepScreenshots(page, `failing-part-${screen}`)
      faults.push(...(await screenFaults(page)).map((fault) => `${screen}: ${fault}`))
      expect(await again.count(), screen).toBe(alerts)
      fail(null)
      for (let left = alerts - 1; left >= 0; left -= 1) {
        await again.nth(left).click()
        await again.nth(left).waitFor({ state: 'detached' })
      }
    }
    expect(faults).toEqual([])
    expect(complaints.filter((complaint) => !complaint.includes('status of 500'))).toEqual([])
    await context.close()
  })

  async function sendHtml(html: string): Promise<string> {
    const body = { from: 'hello@shop.test', to: 'delivered@simulator.test', subject: 'Hello', html }
    return (await service.client.succeed(contract.emails.send, { body })).id
  }

  test.each([
    ['an email', 'HTML source', () => `emails/${written.hostileEmail}`],
    ['a captured message', 'HTML source', () => `captured/${written.hostileCaptured}`],
    ['an inbound message', 'HTML source', () => `inbound-messages/${written.hostileInbound}`],
    ['a campaign', null, () => `campaigns/${written.hostileDraft}`],
    ['a campaign that is edited', null, () => `campaigns/${written.hostileDraft}/edit`],
    ['a template', null, () => `templates/${written.hostileTemplate}`],
  ])(
    'the preview of %s shows its styles, runs nothing, loads nothing and leads out of it in a window of its own alone',
    async (_, source, screenOf) => {
      const { page, context, complaints } = await openDashboard(chromium.browser, service, { person })
      await page.goto(`/app/${service.accountId}/live/${screenOf()}`)
      const frame = page.frameLocator('iframe')
      await frame.getByRole('heading', { name: 'Hello' }).waitFor()
      const colours = await frame
        .locator('body')
        .evaluate("['body', 'h1', 'h2'].map((name) => getComputedStyle(document.querySelector(name)).color)")
      expect(colours).toEqual(['rgb(1, 2, 3)', 'rgb(4, 5, 6)', 'rgb(7, 8, 9)'])
      const [away] = await Promise.all([
        context.waitForEvent('page'),
        frame.getByRole('link', { name: 'Away' }).click(),
      ])
      expect(await away.evaluate('window.opener')).toBeNull()
      await away.close()
      await frame.getByRole('button', { name: 'Send' }).click()
      if (source !== null) {
        await page.getByText(source, { exact: true }).click()
        expect(await page.locator('pre.block').first().innerText()).toContain('tracker.example/e.gif')
      }
      expect(new URL(page.url()).pathname).toContain(screenOf())
      expect(await page.title()).toMatch(/ · Ours · Postern$/)
      expect(complaints.filter((complaint) => complaint.includes('is not ours'))).toEqual([])
      await context.close()
    },
  )

  test.each([
    ['tags without an end', '<a'],
    ['styles, each another one', '<i style="width:00000px">'],
  ])('the longest message that is previewed does not hold the browser up: %s', async (_, piece) => {
    const { page, context } = await openDashboard(chromium.browser, service, { person })
    let count = 0
    const pieces = piece.repeat((previewLimit - 20) / piece.length).replaceAll('00000', () => String(++count))
    const id = await sendHtml(`<h1>Hello</h1>${pieces}`)
    await page.goto(`/app/${service.accountId}/live/emails/${id}`)
    await page.frameLocator('iframe').getByRole('heading', { name: 'Hello' }).waitFor()
    await context.close()
  })

  test('a message too long to be previewed says so, and its source is there', async () => {
    const { page, context } = await openDashboard(chromium.browser, service, { person })
    const id = await sendHtml(`<h1>Hello</h1>${'x'.repeat(previewLimit)}`)
    await page.goto(`/app/${service.accountId}/live/emails/${id}`)
    await page.getByText('too long to be previewed: it has 200,014 characters').waitFor()
    expect(await page.locator('iframe').count()).toBe(0)
    await page.getByText('HTML source', { exact: true }).click()
    expect(await page.locator('pre.block').first().innerText()).toHaveLength(previewLimit + 14)
    await context.close()
  })
})
