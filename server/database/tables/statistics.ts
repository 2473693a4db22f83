import type { Generated } from 'kysely'
import type { Mode } from '../../../contract/mode.ts'

type Key = {
  account_id: string
  mode: Mode
  /** A `StatisticKind`. */
  kind: string
  /**
   * The id of a domain, webhook or campaign, or a tag. Of a part of a campaign: its id, a slash, and the part. Empty: all,
   * or emails without a domain.
   */
  key: string
}

/** The columns of figures; null: 0. Those of the hours and days are bigints, which arrive as text. */
type Figures<Count> = Record<
  | 'sent'
  | 'delivered'
  | 'bounced'
  | 'hard_bounced'
  | 'rejected'
  | 'complained'
  | 'failed'
  | 'suppressed'
  | 'delayed'
  | 'opened'
  | 'opens'
  | 'automated_opens'
  | 'clicked'
  | 'clicks'
  | 'automated_clicks'
  | 'unsubscribed'
  | 'attempts'
  | 'failed_attempts'
  | 'succeeded_deliveries'
  | 'failed_deliveries'
  | `latency_${10 | 25 | 50 | 100 | 250 | 500 | 1_000 | 2_500 | 5_000 | 10_000 | 'more'}`,
  Count | null
> & {
  /** Milliseconds of all answers of endpoints together. A bigint. */
  answer_ms: string | null
}

/** Counts that are not rolled up yet. Never of the kinds `emails` and `webhooks`. */
export type StatisticsDeltasTable = Key & Figures<number> & { id: Generated<string>; hour: Date }

/** Figures by hour, in UTC. */
export type StatisticsHoursTable = Key & Figures<string> & { hour: Date }

/** Figures by day, in UTC. Each is the sum of its hours. */
export type StatisticsDaysTable = Key & Figures<string> & { day: Date }
