import type { BrowserOptions } from '../../../scripts/support/browser.ts'
import { startBrowser } from '../browser.ts'
import { type DashboardOptions, openDashboard, shown } from '../dashboard.ts'
import { signUp } from '../people.ts'
import { startTestService, type TestServiceOptions } from '../service.ts'

export type DashboardWorld = Awaited<ReturnType<typeof createDashboardWorld>>
export type OpenedDashboard = Awaited<ReturnType<DashboardWorld['open']>>

/** A service with an owner, and a browser in which the owner is signed in to the dashboard. */
export async function createDashboardWorld(ofBrowser: BrowserOptions = {}, ofService: TestServiceOptions = {}) {
  await using starting = new AsyncDisposableStack()
  const service = starting.use(await startTestService(ofService))
  const { browser } = starting.use(await startBrowser(ofBrowser))
  const person = await signUp(service)
  const root = `/app/${service.accountId}/live`

  /** Opens an empty page. `person` is the owner unless another one is given. */
  async function open(options: DashboardOptions = {}) {
    const opened = await openDashboard(browser, service, { person, ...options })
    return { ...opened, main: opened.page.getByRole('main'), dialog: opened.page.getByRole('dialog') }
  }

  const running = starting.move()
  return {
    service,
    browser,
    /** The path of the account in live mode. */
    root,
    open,
    /** Opens a screen of the account in live mode, and waits until it is read. */
    async openScreen(path: string, options: DashboardOptions = {}) {
      const opened = await open(options)
      await opened.page.goto(`${root}/${path}`)
      await shown(opened.page)
      return opened
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
