import type { Browser } from 'playwright-core'
import { type DashboardOptions, type DashboardPage, openDashboard } from './dashboard.ts'
import type { HostileAccount } from './hostile-account.ts'
import type { TestService } from './service.ts'

/** Leaves out the pauses before a request is sent a second and a third time. */
const withoutPauses = `{
  const later = window.setTimeout
  window.setTimeout = (run, ms, ...rest) => later(run, ms === 1000 || ms === 2000 ? 0 : ms, ...rest)
}`

const refusal = JSON.stringify({
  error: { code: 'internal_error', message: 'Something failed on our side.', details: [], requestId: 'req_1' },
})

type FailingPage = DashboardPage & {
  /** Has requests whose path and query fit fail. Null: none. */
  fail: (which: RegExp | null) => void
}

/** Opens a page whose requests fail with 500, all but those of the session. Its complaints tell each of them. */
export async function openFailing(
  browser: Browser,
  service: Pick<TestService, 'url'>,
  options: DashboardOptions,
): Promise<FailingPage> {
  const opened = await openDashboard(browser, service, options)
  let failing: RegExp | null = /./
  await opened.page.addInitScript(withoutPauses)
  await opened.page.route('**/v1/**', (route) => {
    const { pathname, search } = new URL(route.request().url())
    if (pathname === '/v1/session' || !failing?.test(pathname + search)) return route.continue()
    return route.fulfill({ status: 500, contentType: 'application/json', body: refusal })
  })
  return {
    ...opened,
    fail: (which) => {
      failing = which
    },
  }
}

/** A screen, the requests to let fail, and the number of alerts that it then shows. */
type FailingPart = { screen: string; failing: RegExp; alerts: number }

/** Returns the screens that have parts with requests of their own. */
export function failingParts(made: HostileAccount): FailingPart[] {
  return [
    { screen: 'overview', failing: /^\/v1\/domains/, alerts: 1 },
    { screen: 'overview', failing: /^\/v1\/(account$|webhooks|statistics\/ranking)/, alerts: 1 },
    { screen: 'emails', failing: /^\/v1\/domains/, alerts: 1 },
    { screen: `emails/${made.email}`, failing: /^\/v1\/inbound-messages/, alerts: 1 },
    { screen: 'webhooks', failing: /^\/v1\/statistics/, alerts: 1 },
    { screen: 'events', failing: /^\/v1\/event-types/, alerts: 1 },
    { screen: 'logs', failing: /^\/v1\/api-keys/, alerts: 1 },
    { screen: 'segments', failing: /^\/v1\/audiences/, alerts: 1 },
    { screen: `segments/${made.segment}`, failing: /^\/v1\/(audiences|topics)/, alerts: 2 },
    { screen: 'segments/new', failing: /^\/v1\/audiences/, alerts: 1 },
    { screen: 'imports/new', failing: /^\/v1\/audiences/, alerts: 1 },
    { screen: `campaigns/${made.draft}/edit`, failing: /^\/v1\/(audiences|segments|topics|subscribers)/, alerts: 4 },
    { screen: `campaigns/${made.sent}`, failing: /^\/v1\/campaigns\?status=completed/, alerts: 1 },
    { screen: `campaigns/${made.paused}`, failing: new RegExp(`^/v1/campaigns/${made.sent}/statistics`), alerts: 1 },
    { screen: `subscribers/${made.subscriber}`, failing: /\/(suppressions|contact-properties|topics)/, alerts: 3 },
    { screen: `audiences/${made.audience}`, failing: /^\/v1\/segments/, alerts: 1 },
    { screen: 'settings/members', failing: /^\/v1\/invitations/, alerts: 1 },
    { screen: 'settings/brand', failing: /^\/v1\/topics/, alerts: 1 },
  ]
}
