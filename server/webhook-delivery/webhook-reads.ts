import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Db, Handle } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import { createCoalescing } from '../lib/request-coalescing.ts'
import { nextSequence } from '../lib/sequence.ts'
import { unlessAborted } from '../lib/unless-aborted.ts'
import { sealedSecretColumns } from './attempt/keyring.ts'
import type { DueDelivery } from './load-deliveries.ts'

type Webhook = DueDelivery['webhook']

/** Maximum number of webhooks read by one statement. */
const batchSize = 1_000
/** How long new calls wait for a statement under way before another one is sent. Milliseconds. */
const patienceMs = 1_000

/** Returns the enabled webhooks among `ids`, by id, as they are now. */
async function readWebhooks(handle: Handle, ids: readonly string[]): Promise<Map<string, Webhook>> {
  const readAt = nextSequence()
  const rows = await executePrepared(
    handle,
    { name: 'read_webhooks' },
    handle
      .selectFrom('webhooks')
      .innerJoin('delivery_flows', 'number', 'flow')
      .select(['id', 'url', 'mode', ...sealedSecretColumns, 'version', 'flow', 'host'])
      .where('id', '=', sql<string>`ANY(${[...new Set(ids)]}::text[])`)
      .where('status', '=', 'enabled'),
  )
  return new Map(rows.map(({ id, ...webhook }) => [id, { ...webhook, readAt }]))
}

/** Reads webhooks for attempts that are about to begin. */
export type WebhookReads = {
  /**
   * Returns the webhook as it is after this call. Null: it is disabled or deleted. Concurrent calls are coalesced.
   * Retries while the database cannot be reached. Rejects only when `signal` aborts.
   */
  read(webhookId: string): Promise<Webhook | null>
}

export type WebhookReadsOptions = {
  db: Db
  /** Ends waiting calls. */
  signal: AbortSignal
  /** Milliseconds between retries. */
  intervalMs: number
  onError: (error: unknown) => void
}

export function createWebhookReads({ db, signal, intervalMs, onError }: WebhookReadsOptions): WebhookReads {
  async function readAll(ids: readonly string[]): Promise<(Webhook | null)[]> {
    for (;;) {
      try {
        const webhooks = await readWebhooks(db, ids)
        return ids.map((id) => webhooks.get(id) ?? null)
      } catch (error) {
        signal.throwIfAborted()
        onError(error)
        await pause(intervalMs, undefined, { signal, ref: false })
      }
    }
  }

  const coalescing = createCoalescing<string, Webhook | null>({
    limit: batchSize,
    patienceMs,
    work: readAll,
    isOfOne: () => false,
  })

  return {
    read(webhookId) {
      signal.throwIfAborted()
      return unlessAborted(coalescing.add('', webhookId), signal, () => signal.reason)
    },
  }
}
