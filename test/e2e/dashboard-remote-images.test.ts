import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { contract } from '../../contract/index.ts'
import { describeInBrowser } from '../support/browser.ts'
import { certificate } from '../support/certificates.ts'
import { accessibilityFaults } from '../support/dashboard.ts'
import { createDashboardWorld, type DashboardWorld } from '../support/worlds/dashboard.ts'

/** One red pixel. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='

describeInBrowser('remote images of a preview', { timeout: 90_000 }, () => {
  const host = 'tracker.example'
  /** The requests that the server of the images has received. */
  const requests: { path: string; headers: NodeJS.Dict<string | string[]> }[] = []
  const server = createServer(certificate('valid'), ({ url = '', headers }, response) => {
    requests.push({ path: url, headers })
    if (url.endsWith('.png')) response.setHeader('Content-Type', 'image/png').end(Buffer.from(pixel, 'base64'))
    else response.setHeader('Content-Type', 'text/html').end('<h1>Not ours</h1>')
  })
  let world: DashboardWorld
  let origin: string
  let hostile: string

  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    origin = `https://${host}:${(server.address() as AddressInfo).port}`
    world = await createDashboardWorld({ ownHosts: [host] })
    await world.service.client.succeed(contract.domains.create, { body: { name: 'shop.test' } })
    hostile = `<meta name="referrer" content="unsafe-url"><meta http-equiv="refresh" content="0; url=${origin}/refresh">
      <base href="${origin}/"><link rel="stylesheet" href="${origin}/style.css">
      <style>@import '${origin}/import.css'; @font-face { font-family: x; src: url(${origin}/font) } h1 { font-family: x }</style>
      <body onload="top.document.title='owned'"><h1>Hello</h1>
      <script>top.document.title = 'owned'; fetch('${origin}/fetch')</script><script src="${origin}/script.js"></script>
      <img src="${origin}/shown.png" referrerpolicy="unsafe-url" onload="top.document.title='owned'">
      <p style="background: url(${origin}/background.png)">Text</p>
      <img src="http://${host}/plain.png"><img src="/v1/session"><img src="//${host}/relative.png">
      <svg><use href="${origin}/use.svg#x"></use></svg><video src="${origin}/video"></video><object data="${origin}/object"></object>
      <iframe src="${origin}/frame"></iframe><iframe srcdoc="<script>top.document.title='owned'</script>"></iframe>
      <form action="${origin}/form" target="_top"><button>Send</button></form>
      <a href="${origin}/away" target="_top" referrerpolicy="unsafe-url" ping="${origin}/ping">Away</a></body>`
  })
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    server.close()
  })

  test('remote images of a preview are loaded when asked, for that view; nothing else is, and their server learns no page and gets no cookie', async () => {
    const { id } = await world.service.client.succeed(contract.emails.send, {
      body: { from: 'hello@shop.test', to: 'delivered@simulator.test', subject: 'Hello', html: hostile },
    })
    const { page, context } = await world.open({ ignoreHTTPSErrors: true })
    await context.addCookies([{ name: 'known', value: '1', url: origin, sameSite: 'None', secure: true }])
    await page.goto(`${world.root}/emails/${id}`)
    await page.frameLocator('iframe').getByRole('heading', { name: 'Hello' }).waitFor()
    expect(requests).toEqual([])

    await page.getByRole('button', { name: 'Load remote images' }).click()
    const message = page.frameLocator('iframe').frameLocator('iframe')
    await message.getByRole('heading', { name: 'Hello' }).waitFor()
    await expect.poll(() => requests.map(({ path }) => path).toSorted()).toEqual(['/background.png', '/shown.png'])
    await expect.poll(() => message.locator('body').evaluate('document.images[0].naturalWidth')).toBe(1)
    await page.getByText('Remote images are loaded, for this view.').waitFor()
    expect(await accessibilityFaults(page)).toEqual([])

    await message.getByRole('button', { name: 'Send' }).click()
    const [away] = await Promise.all([
      context.waitForEvent('page'),
      message.getByRole('link', { name: 'Away' }).click(),
    ])
    await away.getByRole('heading', { name: 'Not ours' }).waitFor()
    expect(await away.evaluate('window.opener')).toBeNull()
    await away.close()
    expect(new URL(page.url()).pathname).toBe(`${world.root}/emails/${id}`)
    expect(await page.title()).toMatch(/^Hello · /)
    expect(requests.map(({ path }) => path).toSorted()).toEqual(['/away', '/background.png', '/shown.png'])
    for (const { path, headers } of requests) {
      expect([path, headers.referer, headers.origin]).toEqual([path, undefined, undefined])
      if (path !== '/away') expect([path, headers.cookie]).toEqual([path, undefined])
    }
    expect(await message.locator('body').evaluate('self.origin')).toBe('null')

    await page.reload()
    await page.getByRole('button', { name: 'Load remote images' }).waitFor()
    expect(requests).toHaveLength(3)
    await context.close()
  })

  test('remote images of a preview are shown by the same page of templates too, and the page shows nothing to who opens it in a window', async () => {
    const { id } = await world.service.client.succeed(contract.templates.create, {
      body: { name: 'Welcome', subject: 'Hello', html: `<h1>Hello</h1><img src="${origin}/template.png">` },
    })
    const { page, context } = await world.open({ ignoreHTTPSErrors: true })
    await page.goto(`${world.root}/templates/${id}`)
    await page.getByRole('button', { name: 'Load remote images' }).click()
    await expect.poll(() => requests.map(({ path }) => path)).toContain('/template.png')

    await page.goto(origin)
    const opening = context.waitForEvent('page')
    await page.evaluate(`void (globalThis.opened = open('${world.service.url}/app/preview-frame'))`)
    const opened = await opening
    await opened.waitForLoadState()
    const got = opened.evaluate("new Promise((resolve) => addEventListener('message', () => setTimeout(resolve)))")
    await opened.evaluate('0')
    await page.evaluate("opened.postMessage('<h1>Sign in</h1>', '*')")
    await got
    expect(await opened.locator('iframe').count()).toBe(0)
    await context.close()
  })
})
