import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/*
 * Every page of the documents, in the order to show them. The sidebar of the site and docs/README.md are made of
 * this table.
 */

/** The top of the checkout. */
export const root = join(import.meta.dirname, '..', '..')

export type Section = {
  title: string
  /** The path of each page from the top of the checkout, and what the page says. Its title is its first heading. */
  pages: Readonly<Record<string, string>>
}

export const sections: readonly Section[] = [
  {
    title: 'Quickstart',
    pages: {
      'README.md': 'what Postern is, and the way to the first webhook and the first email',
      'docs/quickstart.md': 'the way on from there: a webhook fails, is sent again and rotates its secret',
    },
  },
  {
    title: 'Concepts',
    pages: {
      'docs/concepts/webhook-delivery.md': 'webhooks: the schedule, recovering, what is promised, fairness',
      'docs/concepts/email-delivery.md': 'servers, replies, retries, crashes, signatures',
      'docs/concepts/people-and-roles.md': 'users of the dashboard: invitations, roles, signing in, sessions',
      'docs/concepts/statistics.md': 'what each figure counts, the rates, what is promised',
    },
  },
  {
    title: 'Guides',
    pages: {
      'docs/guides/customer-portal.md': 'your customers at their own webhooks, in a frame of your site',
      'docs/guides/dashboard.md': 'the screens, live and test, what they never show, and where they are served',
      'docs/guides/first-real-email.md': 'over a relay, step by step: settings, DNS records, what a relay refuses',
      'docs/guides/receiving-webhooks.md': 'receivers in Node, Python, Go, PHP and Ruby that verify each delivery',
      'docs/guides/polling.md': 'reading the events where no webhook can reach you',
      'docs/guides/domains.md': 'the DNS records, their checks, and rotating DKIM keys',
      'docs/guides/sending-email.md': 'addresses, files, batches, schedules, suppressed addresses',
      'docs/guides/templates.md': 'content that is written once: Liquid, variables, versions, previews',
      'docs/guides/first-newsletter.md': 'from a CSV file to a campaign that has ended, step by step',
      'docs/guides/campaigns.md': 'one message to an audience: starting, pausing, throttling, what is counted',
      'docs/guides/tracking-and-unsubscribing.md': 'tracking, and emails to an audience',
      'docs/guides/topics.md': 'what people may subscribe to or leave, and what each of them gets',
      'docs/guides/double-opt-in.md': 'people who confirm by an email before they get anything',
      'docs/guides/segments.md': 'choosing people of an audience by conditions: operators, counts, what they cost',
      'docs/guides/bounces.md': 'bounces, complaints, success that relays report, automatic replies',
      'docs/guides/importing-contacts.md': 'contacts from CSV, from Mailchimp and Listmonk, and what goes wrong',
      'docs/guides/request-logs.md': 'which requests are kept, what of them is not, and how to turn it off',
      'docs/guides/simulator.md': 'recipients that bounce, open or complain, to test with',
      'docs/guides/from-resend.md': 'what corresponds to what, what is missing, and in which order to switch',
      'docs/guides/from-postal.md': 'the same for Postal',
      'docs/guides/from-listmonk.md': 'the same for Listmonk',
    },
  },
  {
    title: 'Operating',
    pages: {
      'docs/operating/deploy.md': 'processes and roles, TLS, Docker, connections to PostgreSQL, clocks',
      'docs/operating/machine-sizing.md': 'processors, memory and disk, with the arithmetic',
      'docs/operating/accounts-and-keys.md': 'making, listing and revoking them on the command line',
      'docs/operating/backup-and-upgrade.md': 'what to keep, how to upgrade, when data is deleted',
      'docs/operating/monitoring.md': 'health, metrics, logs, a Grafana dashboard and alert rules',
      'docs/operating/why-is-it-late.md': 'a late delivery, step by step, for the operator at night',
      'docs/operating/incidents.md': 'what goes wrong: what Postern does by itself, where to look, what to do',
      'docs/operating/traces.md': 'OpenTelemetry, and a small collector to try it',
    },
  },
  {
    title: 'Scaling',
    pages: {
      'docs/operating/performance.md': 'measured figures, and when they were measured',
      'docs/operating/scaling.md': 'more processes, a larger PostgreSQL, several of them',
      'docs/operating/distributed-postgresql.md': 'how far Postern is from Citus, YugabyteDB and CockroachDB',
    },
  },
  {
    title: 'Reference',
    pages: {
      'docs/reference/settings.md': 'every environment variable, with its unit and default',
      'docs/reference/api.md': 'every route; idempotency, pagination, metadata',
      'docs/reference/authentication.md': 'keys, permissions and sets of them',
      'docs/reference/test-and-live.md': 'what a test key sees and may change',
      'docs/reference/rate-limits.md': 'requests per minute, and the headers that report them',
      'docs/reference/event-types.md': 'every event that a webhook can get, with an example',
      'docs/reference/errors.md': 'the one shape of a failure, and every code',
      'docs/reference/limits.md': 'sizes, counts and times',
      'docs/reference/versions.md': 'what may change in the API, and how it is announced',
    },
  },
  {
    title: 'Architecture',
    pages: {
      'docs/architecture/overview.md': 'the parts, and the folder of each',
      'docs/architecture/delivery-states.md': 'a delivery from its event to its last attempt',
      'docs/architecture/campaign-states.md': 'a campaign and its recipients: who moves what, in which transaction',
      'docs/architecture/email-recipient-states.md': 'an email and each of its recipients, until an outcome is known',
      'docs/architecture/email-lanes.md': 'how emails that are sent singly pass those of campaigns',
      'docs/architecture/sending-domain-states.md': 'a sending domain and the checks of its DNS records',
      'docs/architecture/webhook-states.md': 'a webhook: enabled, disabled, by whom and why',
      'docs/architecture/delivery-engine.md': 'how committed events become HTTP requests: fairness, limits, failures',
    },
  },
  {
    title: 'Decisions',
    pages: {
      'docs/decisions/own-smtp-client.md': 'what a library would have cost, and what was measured',
      'docs/decisions/mime-readers.md': 'what mailparser would read of bounces, and what was measured',
      'docs/decisions/dkim.md': 'RSA and Ed25519 on each message',
      'docs/decisions/endpoint-connections.md': 'undici makes the requests; which connection each gets is ours',
      'docs/decisions/sign-in.md': 'passwords, sessions and second factors without a framework, and why',
      'docs/decisions/queue-use.md': 'what is left to pg-boss, and which statements are ours',
      'docs/decisions/block-editor.md': 'why blocks are a way to edit MJML, and what a library would have cost',
      'docs/decisions/zip-imports.md': 'the library that reads them, and why they are stored before they are read',
      'docs/decisions/dashboard-tables-and-dates.md': 'what TanStack Table, Virtual and Mantine dates would add',
    },
  },
  {
    title: 'Glossary and changelog',
    pages: {
      'docs/glossary.md': 'the usual term for each of ours',
      'docs/changelog.md': 'what each version brought, and what an operator has to do',
    },
  },
  {
    title: 'Working on it',
    pages: {
      'CONTRIBUTING.md': 'setting up, checking, testing; adding a route, an event type or a migration',
      'scripts/bench/RESULTS.md': 'the last results of every benchmark',
      'scripts/bench/TRIED.md': 'what was tried to make it faster, and what came of it',
    },
  },
]

/** The index for readers on a code host. The site has its sidebar instead, and this page too. */
export const indexPage = 'docs/README.md'

/** Every page of the site. */
export const pages: readonly string[] = [...sections.flatMap((section) => Object.keys(section.pages)), indexPage]

/** The first heading of a page. Throws when it has none. */
export function titleOf(page: string): string {
  const title = /^# (.+)$/m.exec(readFileSync(join(root, page), 'utf8'))?.[1]
  if (title === undefined) throw new Error(`${page} has no heading of the first level`)
  return title
}

/** Where a page is on the site: the README is the first page, and `docs/` does not appear in addresses. */
export function addressOf(page: string): string {
  if (page === 'README.md') return 'index.md'
  if (page === indexPage) return 'documents.md'
  return page.replace(/^docs\//, '').toLowerCase()
}

/** The anchor of a heading, the same as on GitHub, so that a link leads to the same place on both. */
export function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, '')
    .replaceAll(' ', '-')
}
