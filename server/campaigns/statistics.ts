import type { CampaignStatistics } from '../../contract/campaign-statistics.ts'
import type { Handle } from '../database/connection.ts'
import type { CampaignReport } from '../statistics/campaign-figures.ts'
import { waitingOf } from './counts.ts'
import { countDeferred } from './engine-queries.ts'
import type { CampaignRow } from './queries.ts'

const shown = [
  'sent',
  'delivered',
  'bounced',
  'complained',
  'opened',
  'opens',
  'clicked',
  'clicks',
  'unsubscribed',
  'failed',
] as const

type EmailFigures = Record<(typeof shown)[number], number>

function sumOf(all: readonly EmailFigures[]): EmailFigures {
  return Object.fromEntries(
    shown.map((figure) => [figure, all.reduce((sum, one) => sum + one[figure], 0)]),
  ) as EmailFigures
}

function toEmails({ failed, ...figures }: EmailFigures): CampaignStatistics['emails'] {
  const { sent, delivered, bounced, complained, opened, opens, clicked, clicks, unsubscribed } = figures
  return { sent, delivered, bounced, complained, opened, opens, clicked, clicks, unsubscribed, undeliverable: failed }
}

/** A recipient is tried for 72 hours: see server/email-delivery/retry-schedule.ts. None is after this time. Milliseconds. */
const triedMs = 4 * 24 * 3_600_000

/** Returns how many recipients of a campaign are still tried. Counts nothing where none can be. */
export async function deferredOf(handle: Handle, row: CampaignRow, now: Date): Promise<number> {
  const isOver = row.ended_at !== null && now.getTime() - row.ended_at.getTime() > triedMs
  if (row.handed_over_count === 0 || isOver) return 0
  // More may have been handed over since the campaign was read.
  return Math.min(await countDeferred(handle, { accountId: row.account_id, id: row.id }), row.handed_over_count)
}

/**
 * Returns how far a campaign is, and what was counted of its emails.
 *
 * @param deferred How many recipients are still tried.
 */
export function toStatistics(row: CampaignRow, report: CampaignReport, deferred: number): CampaignStatistics {
  const waiting = waitingOf(row)
  const hasEnded = row.status === 'canceled'
  const totals = sumOf(report.days)
  const toStep = ({ start, ...figures }: CampaignReport['days'][number]) => ({
    start: start.toISOString(),
    ...toEmails(figures),
  })
  return {
    recipients: row.recipient_count,
    waiting: hasEnded ? 0 : waiting,
    queued: row.queued_count,
    handedOver: row.handed_over_count,
    deferred,
    failed: row.failed_count,
    skipped: { left: row.left_count, unsubscribed: row.unsubscribed_count, suppressed: row.suppressed_count },
    canceled: row.canceled_count + (hasEnded ? waiting : 0),
    emails: toEmails(totals),
    hours: report.hours.map(toStep),
    days: report.days.map(toStep),
    links: linksOf(report),
    variants: variantsOf(row, report),
    providers: providersOf(report, totals),
  }
}

function linksOf({ links, otherLinks }: CampaignReport): CampaignStatistics['links'] {
  const known = links.map(({ link, figures }) => ({
    link,
    clicked: figures?.clicked ?? 0,
    clicks: figures?.clicks ?? 0,
  }))
  const others = otherLinks && { link: null, clicked: otherLinks.clicked, clicks: otherLinks.clicks }
  return others ? [...known, others] : known
}

function variantsOf(
  { ab_test: test, ab_people: people }: CampaignRow,
  { variants }: CampaignReport,
): CampaignStatistics['variants'] {
  return (test?.variants ?? []).map(({ name }, number) => {
    const { sent = 0, delivered = 0, opened = 0, clicked = 0, unsubscribed = 0 } = variants.get(number) ?? {}
    return { name, people: people?.[number] ?? 0, sent, delivered, opened, clicked, unsubscribed }
  })
}

/** Returns the figures by provider. `other`: the rest of the totals, which have every recipient. */
function providersOf({ providers }: CampaignReport, totals: EmailFigures): CampaignStatistics['providers'] {
  const known = sumOf(providers)
  const rest = Object.fromEntries(shown.map((one) => [one, Math.max(0, totals[one] - known[one])])) as EmailFigures
  const others = { kind: 'other' as const, name: null, ...toEmails(rest) }
  const hasRest = shown.some((one) => rest[one] > 0)
  return [
    ...providers.map(({ name, isDomain, ...figures }) => ({
      kind: isDomain ? ('domain' as const) : ('provider' as const),
      name,
      ...toEmails(figures),
    })),
    ...(hasRest ? [others] : []),
  ]
}
