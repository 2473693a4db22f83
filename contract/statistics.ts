import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { emailLimits } from './email-content.ts'
import { line, timeInput, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { mode } from './mode.ts'
import { pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

/** How long figures are kept by hour. Days. By day they are kept for `STATISTICS_DAYS`. */
export const hourlyDays = 31
/** The longest period of one request. Days. */
export const maxRangeDays = { hour: hourlyDays, day: 400, ranking: 31 } as const
/** Domains, tags and webhooks, of each kind, that an account has figures of its own for in one day and mode. */
export const maxKeysPerDay = 1_000

const count = (description: string) => z.int().min(0).meta({ description })
const rate = (description: string) =>
  z
    .number()
    .min(0)
    .nullable()
    .meta({ description: `${description} Null: nothing was sent.` })
const milliseconds = (description: string) => z.number().min(0).nullable().meta({ description })

const emailCounts = {
  sent: count('Recipients whose message a mail server has accepted: as often as `email.sent`.'),
  delivered: count('Recipients whose message has reached their own mail server: `email.delivered`.'),
  bounced: count('Recipients whose message bounced: `email.bounced`.'),
  hardBounced: count('The hard bounces of `bounced`, such as of an address that does not exist.'),
  rejected: count('Those of `bounced` whose message no server had accepted before: they are not in `sent`.'),
  complained: count('Recipients who reported the message as spam: `email.complained`.'),
  failed: count('Recipients that this service gave up on: `email.failed`.'),
  suppressed: count('Recipients that were not written to, because of the suppression list or an unsubscribe.'),
  delayed: count('Recipients that were refused for now for the first time: `email.delivery_delayed`.'),
  opened: count('Recipients who opened the message for the first time.'),
  opens: count('All opens that look like those of people.'),
  automatedOpens: count('All opens that look like those of machines.'),
  clicked: count('Recipients who clicked a link of the message for the first time.'),
  clicks: count('All clicks that look like those of people.'),
  automatedClicks: count('All clicks that look like those of machines.'),
}

const webhookCounts = {
  attempts: count('Requests to endpoints. Tests are not counted.'),
  failedAttempts: count('Those of `attempts` that failed.'),
  succeededDeliveries: count('Deliveries that an endpoint accepted.'),
  failedDeliveries: count('Deliveries that failed for good, after their last attempt.'),
}

const emailExample = {
  sent: 1_200,
  delivered: 1_180,
  bounced: 14,
  hardBounced: 9,
  rejected: 4,
  complained: 1,
  failed: 2,
  suppressed: 3,
  delayed: 20,
  opened: 410,
  opens: 530,
  automatedOpens: 300,
  clicked: 80,
  clicks: 95,
  automatedClicks: 12,
}
const emailRatesExample = { delivery: 0.980066, bounce: 0.011628, complaint: 0.000833, open: 0.341667, click: 0.066667 }
const webhookExample = {
  attempts: 5_020,
  failedAttempts: 25,
  succeededDeliveries: 4_990,
  failedDeliveries: 2,
  latency: { averageMs: 84.2, p50Ms: 61, p95Ms: 240, p99Ms: 730 },
}
const webhookRatesExample = { failure: 0.00498 }
const histogramExample = [
  { upToMs: 100, count: 4_012 },
  { upToMs: null, count: 3 },
]

const emailCountsObject = z.object(emailCounts).meta({
  id: 'EmailStatistics',
  description: 'What happened to recipients of emails. Each recipient of an email is counted for itself.',
  example: emailExample,
})

const latency = z
  .object({
    averageMs: milliseconds('Milliseconds, exact. Null: no endpoint answered.'),
    p50Ms: milliseconds(
      'Half of the answers took at most this many milliseconds. Estimated within a class of the histogram.',
    ),
    p95Ms: milliseconds('The same for 95 % of the answers.'),
    p99Ms: milliseconds('The same for 99 % of the answers.'),
  })
  .meta({
    id: 'WebhookLatency',
    description:
      'Milliseconds until endpoints had answered, successes and failures alike. Attempts without an answer are left out.',
    example: webhookExample.latency,
  })

const webhookCountsObject = z.object({ ...webhookCounts, latency }).meta({
  id: 'WebhookStatistics',
  description: 'What happened to deliveries to webhooks.',
  example: webhookExample,
})

const emailRates = z
  .object({
    delivery: rate('`delivered` of those that were tried: `sent` and `rejected`.'),
    bounce: rate('`bounced` of those that were tried: `sent` and `rejected`.'),
    complaint: rate('`complained` of `sent`.'),
    open: rate('`opened` of `sent`.'),
    click: rate('`clicked` of `sent`.'),
  })
  .meta({
    id: 'EmailRates',
    description:
      'Shares; 1 is 100 %. A bounce, complaint, open or click counts when it happens, not when its message was sent, so a share of a short period can be above 1.',
    example: emailRatesExample,
  })

const webhookRates = z
  .object({ failure: rate('`failedAttempts` of `attempts`.') })
  .meta({ id: 'WebhookRates', description: 'Shares, from 0 to 1.', example: webhookRatesExample })

const latencyClass = z
  .object({
    upToMs: z.int().nullable().meta({ description: 'The longest answer of the class. Milliseconds. Null: no bound.' }),
    count: count('Answers in this class.'),
  })
  .meta({
    id: 'LatencyClass',
    description: 'Answers of endpoints, by how long they took.',
    example: histogramExample[0],
  })

const emailTotals = emailCountsObject.extend({ rates: emailRates }).meta({
  id: 'EmailTotals',
  description: 'What happened to recipients of emails in the whole period.',
})
const webhookTotals = webhookCountsObject
  .extend({ rates: webhookRates, histogram: z.array(latencyClass).meta({ description: 'The answers by latency.' }) })
  .meta({ id: 'WebhookTotals', description: 'What happened to deliveries to webhooks in the whole period.' })

const emailsPart = 'Null: the request is about a webhook.'
const webhooksPart = 'Null: the request is about a domain or a tag.'

const bucket = z
  .object({
    start: timestamp.meta({ description: 'When the hour or day begins.' }),
    emails: emailCountsObject.nullable().meta({ description: emailsPart }),
    webhooks: webhookCountsObject.nullable().meta({ description: webhooksPart }),
  })
  .meta({ id: 'StatisticsBucket', description: 'The figures of one hour or day.' })

const statisticsResult = z
  .object({
    mode,
    step: z.enum(['hour', 'day']),
    since: timestamp.meta({ description: 'Where the first hour or day begins.' }),
    until: timestamp.meta({ description: 'Where the last one ends.' }),
    keptSince: timestamp.meta({ description: 'Older figures are deleted. `since` is never before this.' }),
    totals: z.object({
      emails: emailTotals.nullable().meta({ description: emailsPart }),
      webhooks: webhookTotals.nullable().meta({ description: webhooksPart }),
    }),
    data: z.array(bucket).meta({ description: 'Every hour or day, the oldest first, those without events too.' }),
  })
  .meta({
    id: 'Statistics',
    description: 'What happened in a period, in total and by hour or day.',
    example: {
      mode: 'live',
      step: 'day',
      since: '2026-03-01T00:00:00.000Z',
      until: '2026-03-02T00:00:00.000Z',
      keptSince: '2025-01-25T00:00:00.000Z',
      totals: {
        emails: { ...emailExample, rates: emailRatesExample },
        webhooks: { ...webhookExample, rates: webhookRatesExample, histogram: histogramExample },
      },
      data: [{ start: '2026-03-01T00:00:00.000Z', emails: emailExample, webhooks: webhookExample }],
    },
  })

const stepField = z
  .enum(['hour', 'day'])
  .default('day')
  .meta({
    description: `Hours and days are those of UTC. By hour the last ${hourlyDays} days are kept.`,
    example: 'day',
  })

const timeline = z.strictObject({
  step: stepField,
  since: timeInput.optional().meta({
    description: 'From the hour or day that this time is in. Default: 24 hours by hour, 30 days by day.',
  }),
  until: timeInput.optional().meta({ description: 'To the hour or day that this time is in. Default: now.' }),
  domainId: idSchema('domain', 'Only emails from this domain.').optional(),
  tag: line(emailLimits.tagCharacters).min(1).optional().meta({ description: 'Only emails with this tag.' }),
  webhookId: idSchema('webhook', 'Only deliveries to this webhook.').optional(),
})

const ranked = z
  .object({
    key: z.string().meta({
      description: 'The id of the domain or webhook, or the tag. It may be deleted by now.',
      example: exampleId('domain'),
    }),
    emails: emailTotals.nullable().meta({ description: 'Null: `by` is `webhook`.' }),
    webhooks: webhookTotals.nullable().meta({ description: 'Null: `by` is `domain` or `tag`.' }),
  })
  .meta({ id: 'RankedStatistics', description: 'The figures of one domain, tag or webhook in the whole period.' })

const rankingResult = z
  .object({
    mode,
    by: z.enum(['domain', 'tag', 'webhook']),
    since: timestamp.meta({ description: 'Where the first day begins.' }),
    until: timestamp.meta({ description: 'Where the last one ends.' }),
    data: z.array(ranked).meta({ description: 'The busiest first: by recipients tried, or by attempts.' }),
  })
  .meta({
    id: 'StatisticsRanking',
    description: 'The busiest domains, tags or webhooks of some days.',
    example: {
      mode: 'live',
      by: 'domain',
      since: '2026-03-01T00:00:00.000Z',
      until: '2026-03-02T00:00:00.000Z',
      data: [{ key: exampleId('domain'), emails: { ...emailExample, rates: emailRatesExample }, webhooks: null }],
    },
  })

const ranking = z.strictObject({
  by: z
    .enum(['domain', 'tag', 'webhook'])
    .default('domain')
    .meta({ description: 'What to compare.', example: 'domain' }),
  since: timeInput
    .optional()
    .meta({ description: 'From the day, in UTC, that this time is in. Default: 30 days in all.' }),
  until: timeInput.optional().meta({ description: 'To the day that this time is in. Default: now.' }),
  limit: pageQuery.limit,
})

export type Statistics = z.infer<typeof statisticsResult>
export type StatisticsQuery = z.infer<typeof timeline>
export type StatisticsRanking = z.infer<typeof rankingResult>
export type StatisticsRankingQuery = z.infer<typeof ranking>
export type EmailStatistics = z.infer<typeof emailCountsObject>
export type WebhookStatistics = z.infer<typeof webhookCountsObject>
export type EmailTotals = z.infer<typeof emailTotals>
export type WebhookTotals = z.infer<typeof webhookTotals>

export const statistics = c.router({
  get: {
    method: 'GET',
    path: '/v1/statistics',
    summary: 'Get statistics',
    description: `What happened in a period, in the mode of the key: of the whole account, or of one domain, tag or webhook. Figures are exact as soon as something is recorded. By hour at most ${maxRangeDays.hour} days, by day ${maxRangeDays.day}. An account has figures of its own for the first ${maxKeysPerDay.toLocaleString('en')} domains, tags and webhooks, of each kind, in a day; the figures of the account have them all.`,
    query: timeline,
    ...outcome(
      {
        operationId: 'getStatistics',
        tag: 'Statistics',
        permission: 'statistics:read',
        errors: ['rule_violation'],
      },
      { 200: statisticsResult },
    ),
  },
  ranking: {
    method: 'GET',
    path: '/v1/statistics/ranking',
    summary: 'Compare domains, tags or webhooks',
    description: `The busiest of them in at most ${maxRangeDays.ranking} days, in the mode of the key.`,
    query: ranking,
    ...outcome(
      {
        operationId: 'rankStatistics',
        tag: 'Statistics',
        permission: 'statistics:read',
        errors: ['rule_violation'],
      },
      { 200: rankingResult },
    ),
  },
})
