import { sql } from 'kysely'
import { plainArray } from '../../database/arrays.ts'
import type { Db } from '../../database/connection.ts'
import { executePrepared } from '../../database/prepared.ts'
import { queueNow } from '../../queue/queue.ts'
import type { Settlement } from './settlement-types.ts'

/**
 * Counts the results of attempts by webhook, for the health of webhooks. These are statistics, separate from the log of
 * attempts.
 */
export type WebhookOutcomes = {
  add(settlement: Settlement): void
  /** Adds the counts since the last call to the table. Counts that cannot be written are kept. */
  write(): Promise<void>
}

type Counts = { succeeded: number; failed: number; durationMs: number; maxDurationMs: number }

/** Maximum number of webhooks written by one statement. */
const pageSize = 1_000
/** Maximum number of webhooks counted between two writes. Attempts of further webhooks are not counted. */
const maxWebhooks = 10_000

export function createWebhookOutcomes(db: Db): WebhookOutcomes {
  const counts = new Map<string, Counts>()

  function countsOf(webhookId: string): Counts | null {
    const known = counts.get(webhookId)
    if (known !== undefined) return known
    if (counts.size >= maxWebhooks) return null
    const none = { succeeded: 0, failed: 0, durationMs: 0, maxDurationMs: 0 }
    counts.set(webhookId, none)
    return none
  }

  /** Adds counts that could not be written to those made since. */
  function putBack(webhookId: string, more: Counts): void {
    const own = countsOf(webhookId)
    if (own === null) return
    own.succeeded += more.succeeded
    own.failed += more.failed
    own.durationMs += more.durationMs
    own.maxDurationMs = Math.max(own.maxDurationMs, more.maxDurationMs)
  }

  return {
    add({ delivery, outcome, verdict }) {
      const own = countsOf(delivery.webhookId)
      if (own === null) return
      const durationMs = Math.round(outcome.durationMs)
      if (verdict.kind === 'succeeded') own.succeeded += 1
      else own.failed += 1
      own.durationMs += durationMs
      own.maxDurationMs = Math.max(own.maxDurationMs, durationMs)
    },
    async write() {
      const all = [...counts]
      counts.clear()
      for (let from = 0; from < all.length; from += pageSize) {
        try {
          await add(db, all.slice(from, from + pageSize))
        } catch (error) {
          for (const [webhookId, more] of all.slice(from)) putBack(webhookId, more)
          throw error
        }
      }
    },
  }
}

async function add(db: Db, page: readonly (readonly [string, Counts])[]): Promise<void> {
  const column = (name: keyof Counts) => plainArray(page.map(([, counts]) => counts[name]))
  const statement = sql`
    INSERT INTO webhook_outcomes AS o (webhook_id, bucket, succeeded, failed, duration_ms, max_duration_ms)
    SELECT webhook_id, date_bin('5 minutes', ${queueNow}, '2000-01-01 00:00Z'), succeeded, failed, duration_ms,
      max_duration_ms
    FROM unnest(
      ${plainArray(page.map(([webhookId]) => webhookId))}::text[],
      ${column('succeeded')}::int[],
      ${column('failed')}::int[],
      ${column('durationMs')}::bigint[],
      ${column('maxDurationMs')}::int[]
    ) AS i (webhook_id, succeeded, failed, duration_ms, max_duration_ms)
    -- In a fixed order, so that two processes never deadlock.
    ORDER BY webhook_id
    ON CONFLICT (webhook_id, bucket) DO UPDATE SET succeeded = o.succeeded + excluded.succeeded,
      failed = o.failed + excluded.failed, duration_ms = o.duration_ms + excluded.duration_ms,
      max_duration_ms = greatest(o.max_duration_ms, excluded.max_duration_ms)
  `
  await executePrepared(db, { name: 'add_webhook_outcomes' }, statement)
}
