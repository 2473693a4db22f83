/*
 * The figures that are counted, by their columns. The tables `statistics_deltas`, `statistics_hours` and
 * `statistics_days` all have these columns; null stands for 0.
 */

/** The figures about recipients of emails. */
export const emailFigures = [
  'sent',
  'delivered',
  'bounced',
  'hard_bounced',
  'rejected',
  'complained',
  'failed',
  'suppressed',
  'delayed',
  'opened',
  'opens',
  'automated_opens',
  'clicked',
  'clicks',
  'automated_clicks',
  'unsubscribed',
] as const

export type EmailFigure = (typeof emailFigures)[number]

/**
 * The classes of the histogram of latency: answers that took at most this many milliseconds and more than the class
 * before. The last class has no bound.
 */
export const latencyClasses = [
  { figure: 'latency_10', upToMs: 10 },
  { figure: 'latency_25', upToMs: 25 },
  { figure: 'latency_50', upToMs: 50 },
  { figure: 'latency_100', upToMs: 100 },
  { figure: 'latency_250', upToMs: 250 },
  { figure: 'latency_500', upToMs: 500 },
  { figure: 'latency_1000', upToMs: 1_000 },
  { figure: 'latency_2500', upToMs: 2_500 },
  { figure: 'latency_5000', upToMs: 5_000 },
  { figure: 'latency_10000', upToMs: 10_000 },
  { figure: 'latency_more', upToMs: null },
] as const

/** The figures about deliveries to webhooks. `answer_ms`: the milliseconds of all answers together. */
export const webhookFigures = [
  'attempts',
  'failed_attempts',
  'succeeded_deliveries',
  'failed_deliveries',
  'answer_ms',
  ...latencyClasses.map(({ figure }) => figure),
] as const

export type WebhookFigure = (typeof webhookFigures)[number]
export type Figure = EmailFigure | WebhookFigure

export const figures: readonly Figure[] = [...emailFigures, ...webhookFigures]

/**
 * The subject of figures. `domain` and `tag`: the emails of a sending domain, or with a tag. `webhook`: the deliveries
 * to a webhook. `campaign`: the emails of a campaign. `campaign_link`, `campaign_variant`, `campaign_mailbox` and
 * `campaign_domain`: those of a campaign by the number of a link, by the variant that is tested, by well-known mailbox
 * provider, and by the domain of all other recipients.
 * `emails` and `webhooks`: all of the account; their key is empty.
 */
export type StatisticKind =
  | 'domain'
  | 'tag'
  | 'webhook'
  | 'campaign'
  | 'campaign_link'
  | 'campaign_variant'
  | 'campaign_mailbox'
  | 'campaign_domain'
  | 'emails'
  | 'webhooks'
