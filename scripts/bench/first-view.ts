import type { Browser } from 'playwright-core'
import type { StartedService } from './starts.ts'

/* Measures how long a browser takes to show a page that can be used. */

/** The time and the script size of a first view. */
export type FirstView = {
  /** From the navigation to the frame in which the page can be used. Milliseconds. */
  usableMs: number
  /** Bytes of all scripts that the page had loaded by then, with gzip. */
  scriptBytes: number
}

export type FirstViewOptions = {
  url: string
  /** An expression in JavaScript that is true once the page can be used. */
  isUsable: string
  /** Default: none. */
  sessionToken?: string
}

/** The form to sign in: a field to type into. */
export const signInIsUsable = "document.querySelector('form input:not([disabled])') !== null"
/** The overview: its heading, and nothing that is still being read. */
export const overviewIsUsable =
  "document.querySelector('h1')?.textContent === 'Overview' && document.querySelector('[aria-busy=true]') === null"

const timeoutMs = 30_000

/** Opens a page in a new context, with nothing in its cache. */
export async function measureFirstView(browser: Browser, options: FirstViewOptions): Promise<FirstView> {
  const { url, isUsable, sessionToken } = options
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
  try {
    if (sessionToken !== undefined) {
      const cookie = { name: 'postern_session', value: sessionToken, url, httpOnly: true }
      await context.addCookies([cookie])
    }
    const page = await context.newPage()
    const seen = Promise.withResolvers<{ usableMs: number; scripts: string[] }>()
    await page.exposeFunction('reportFirstView', seen.resolve)
    await page.addInitScript(watchOf(isUsable))
    const giveUp = setTimeout(() => seen.reject(new Error(`${url} was not usable within ${timeoutMs} ms`)), timeoutMs)
    const [{ usableMs, scripts }] = await Promise.all([seen.promise, page.goto(url)]).finally(() =>
      clearTimeout(giveUp),
    )
    const sizes = await Promise.all(scripts.map(sizeWithGzip))
    return { usableMs, scriptBytes: sizes.reduce((sum, bytes) => sum + bytes, 0) }
  } finally {
    await context.close()
  }
}

/** Looks at each frame, and reports the time after the first one in which the page can be used. */
function watchOf(isUsable: string): string {
  return `
    const look = () => {
      if (!(${isUsable})) return void requestAnimationFrame(look)
      const scripts = performance.getEntriesByType('resource').map(({ name }) => name)
        .filter((name) => new URL(name).pathname.endsWith('.js'))
      requestAnimationFrame(() => reportFirstView({ usableMs: performance.now(), scripts }))
    }
    requestAnimationFrame(look)
  `
}

async function sizeWithGzip(url: string): Promise<number> {
  const response = await fetch(url, { headers: { 'accept-encoding': 'gzip' } })
  await response.arrayBuffer()
  const length = Number(response.headers.get('content-length'))
  if (!response.ok || !(length > 0)) throw new Error(`${url} was answered ${response.status} without a length`)
  return length
}

/** Makes the first user by the link of the first start. Returns the token of the session. */
export async function signUpFirst({ url, linkToken }: Pick<StartedService, 'url' | 'linkToken'>): Promise<string> {
  const response = await fetch(`${url}/v1/links/accept`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url, 'x-postern-dashboard': '1' },
    body: JSON.stringify({
      token: linkToken,
      name: 'Ada Lovelace',
      email: 'ada@example.com',
      password: 'correct horse battery staple',
    }),
  })
  const token = /postern_session=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1]
  if (token === undefined) throw new Error(`the link of the first start was answered ${response.status}`)
  return token
}
