import type { EmailStatistics, EmailTotals, WebhookStatistics, WebhookTotals } from '../../contract/statistics.ts'
import { figures, latencyClasses } from './figures.ts'
import { answersOf, quantileMs } from './latency.ts'
import type { Figures } from './queries.ts'

/** Returns figures that are all 0. */
export function noFigures(): Figures {
  return Object.fromEntries(figures.map((figure) => [figure, 0])) as Figures
}

/** Returns the sums of figures. */
export function sumOf(all: readonly Figures[]): Figures {
  const sum = noFigures()
  for (const one of all) for (const figure of figures) sum[figure] += one[figure]
  return sum
}

export function toEmails(figures: Figures): EmailStatistics {
  return {
    sent: figures.sent,
    delivered: figures.delivered,
    bounced: figures.bounced,
    hardBounced: figures.hard_bounced,
    rejected: figures.rejected,
    complained: figures.complained,
    failed: figures.failed,
    suppressed: figures.suppressed,
    delayed: figures.delayed,
    opened: figures.opened,
    opens: figures.opens,
    automatedOpens: figures.automated_opens,
    clicked: figures.clicked,
    clicks: figures.clicks,
    automatedClicks: figures.automated_clicks,
  }
}

export function toEmailTotals(figures: Figures): EmailTotals {
  const { sent } = figures
  const tried = sent + figures.rejected
  return {
    ...toEmails(figures),
    rates: {
      delivery: share(figures.delivered, tried),
      bounce: share(figures.bounced, tried),
      complaint: share(figures.complained, sent),
      open: share(figures.opened, sent),
      click: share(figures.clicked, sent),
    },
  }
}

export function toWebhooks(figures: Figures): WebhookStatistics {
  const answers = answersOf(figures)
  return {
    attempts: figures.attempts,
    failedAttempts: figures.failed_attempts,
    succeededDeliveries: figures.succeeded_deliveries,
    failedDeliveries: figures.failed_deliveries,
    latency: {
      averageMs: answers === 0 ? null : Math.round((figures.answer_ms / answers) * 10) / 10,
      p50Ms: quantileMs(figures, 0.5),
      p95Ms: quantileMs(figures, 0.95),
      p99Ms: quantileMs(figures, 0.99),
    },
  }
}

export function toWebhookTotals(figures: Figures): WebhookTotals {
  return {
    ...toWebhooks(figures),
    rates: { failure: share(figures.failed_attempts, figures.attempts) },
    histogram: latencyClasses.map(({ figure, upToMs }) => ({ upToMs, count: figures[figure] })),
  }
}

/** Returns a share of at least 0, with 6 places. Null: there is nothing to compare with. */
function share(part: number, whole: number): number | null {
  return whole === 0 ? null : Math.round((part / whole) * 1e6) / 1e6
}
