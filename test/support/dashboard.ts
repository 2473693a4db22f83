import { readFile } from 'node:fs/promises'
import type { AxeResults } from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import type { Person } from './people.ts'
import type { TestService } from './service.ts'

/** A page of the dashboard that takes down what its browser complains about. */
export type DashboardPage = { page: Page; context: BrowserContext; complaints: string[] }

export type DashboardOptions = {
  /** Whose session it has. Default: nobody's. */
  person?: Person
  colorScheme?: 'light' | 'dark'
  /** Default: `desktop`. */
  viewport?: { width: number; height: number }
  /** Whether it takes certificates of no known authority. Default: no. */
  ignoreHTTPSErrors?: boolean
  /** The reader's. Default: that of the tests. */
  timezoneId?: string
}

export const desktop = { width: 1440, height: 900 }
export const phone = { width: 390, height: 844 }

/** Opens a page with a session of its own, or none. */
export async function openDashboard(
  browser: Browser,
  service: Pick<TestService, 'url'>,
  { person, colorScheme = 'light', viewport = desktop, ignoreHTTPSErrors = false, timezoneId }: DashboardOptions = {},
): Promise<DashboardPage> {
  const context = await browser.newContext({
    colorScheme,
    viewport,
    ignoreHTTPSErrors,
    baseURL: service.url,
    ...(timezoneId && { timezoneId }),
  })
  if (person !== undefined) {
    await context.addCookies([{ name: 'postern_session', value: person.token, url: service.url, httpOnly: true }])
  }
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const complaints: string[] = []
  page.on('console', (message) => {
    const isWanted = /status of 40[0-9]|status of 422/.test(message.text())
    if (['error', 'warning'].includes(message.type()) && !isWanted) complaints.push(`${page.url()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => complaints.push(`${page.url()}: ${error}`))
  const isOurs = (url: string) => url.startsWith(`${service.url}/`) || url.startsWith('data:')
  // Those that the Content-Security-Policy has stopped went nowhere.
  page.on('requestfailed', (request) => {
    const isStopped = request.failure()?.errorText === 'csp'
    if (!isStopped && !isOurs(request.url())) complaints.push(`${page.url()}: ${request.url()} is not ours`)
  })
  page.on('requestfinished', (request) => {
    if (!isOurs(request.url())) complaints.push(`${page.url()}: ${request.url()} is not ours`)
  })
  return { page, context, complaints }
}

/** Waits until a screen is read. */
export async function shown(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' })
}

/**
 * Opens a screen as a link does: where the dashboard is open, its page is not loaded again, which saves half the processor
 * time. It goes by way of an address where nothing is, so that nothing of the screen before is taken for the next one.
 */
export async function openByLink(page: Page, path: string): Promise<void> {
  const [, app, account, mode] = path.split('/')
  if (!page.url().includes(`/${app}/${account}/`)) {
    await page.goto(path)
    return
  }
  const nothing = page.getByRole('heading', { name: 'Nothing is here' })
  await page.evaluate(`history.pushState(null, '', '/${app}/${account}/${mode}/nowhere')`)
  await nothing.waitFor()
  await page.evaluate(`history.pushState(null, '', ${JSON.stringify(path)})`)
  await nothing.waitFor({ state: 'detached' })
}

/** Waits for what changes once. What turns without an end, such as a loader, goes on. */
const untilStill = `Promise.allSettled(
  document.getAnimations().flatMap(({ effect, finished }) => (effect.getTiming().iterations === 1 ? [finished] : [])),
)`

const axe = await readFile(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** Returns what axe finds on a screen, and that it has more than one primary action: a filled button. */
export async function screenFaults(page: Page): Promise<string[]> {
  const filled = page.getByRole('main').locator('button[data-variant="filled"], a[data-variant="filled"]')
  const names = await filled.allInnerTexts()
  const primary = names.length > 1 ? [`there are ${names.length} primary actions: ${names.join(', ')}`] : []
  return [...primary, ...(await accessibilityFaults(page))]
}

/**
 * Returns what axe finds on the page, one line each. It looks at a page that keeps still: the words of a notification
 * that fades out have too little contrast for a moment.
 */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.evaluate(untilStill)
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe)
  const { violations } = await page.evaluate<AxeResults>(
    "axe.run({ exclude: ['iframe'] }, { resultTypes: ['violations'] })",
  )
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`),
  )
}
