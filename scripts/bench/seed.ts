import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { hashOfKey, lastFourOf, newKey } from '../../server/api-keys/key-format.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createOutbox, type NewEvent } from '../../server/outbox/append.ts'
import { firstIdAt, newId } from '../../server/shared/ids.ts'
import type { World } from './lab.ts'

/** A customer of the service. */
export type Tenant = { accountId: string; key: string; webhookIds: readonly string[] }

/** The type of the appended events, which is also the default event type of the webhooks. */
export const usualEvent = 'subscriber.added'

/** Rows of one statement, far below the limit of parameters in PostgreSQL. */
const chunkSize = 1_000

/** Adds an account for each of `tenants`, with a live key and webhooks to `urls`. */
export async function addTenants(
  { db, box }: World,
  tenants: readonly { urls: readonly string[]; events?: readonly string[]; plan?: string }[],
): Promise<Tenant[]> {
  const now = new Date()
  const made = tenants.map(({ urls, events = [usualEvent], plan = 'scale' }) => ({
    accountId: newId('account', now),
    key: newKey('live'),
    plan,
    webhooks: urls.map((url) => ({ id: newId('webhook', now), url, events: [...events] })),
  }))
  await inTransaction(db, async (trx) => {
    for (const chunk of chunksOf(made, chunkSize)) {
      const accounts = chunk.map(({ accountId, plan }) => ({ id: accountId, name: 'Benchmark', plan }))
      const keys = chunk.map(({ accountId, key }) => ({
        id: newId('apiKey', now),
        account_id: accountId,
        mode: 'live' as const,
        name: 'Benchmark',
        permissions: ['full_access'],
        secret_hash: hashOfKey(key),
        last_four: lastFourOf(key),
      }))
      await trx.insertInto('accounts').values(accounts).execute()
      await trx.insertInto('api_keys').values(keys).execute()
    }
    const webhooks = made.flatMap(({ accountId, webhooks }) =>
      webhooks.map((webhook) => ({ ...webhook, account_id: accountId, secret: box.seal(`whsec_${webhook.id}`) })),
    )
    for (const chunk of chunksOf(webhooks, chunkSize)) await trx.insertInto('webhooks').values(chunk).execute()
  })
  return made.map(({ accountId, key, webhooks }) => ({ accountId, key, webhookIds: webhooks.map(({ id }) => id) }))
}

/** Adds an empty audience and returns its id. */
export async function addAudience({ db }: World, { accountId }: Tenant): Promise<string> {
  const id = newId('audience', new Date())
  await db.insertInto('audiences').values({ id, account_id: accountId, name: 'Readers' }).execute()
  return id
}

/** Returns an event as adding a person causes it. */
function usualEventOf(number: number): NewEvent {
  const subscriberId = newId('subscriber', new Date())
  return {
    type: usualEvent,
    data: { subscriberId, email: `reader-${number}@example.com`, status: 'active' },
  }
}

/** Consecutive events of one account in the outbox. */
const runLength = 50

/**
 * Appends `count` events as the service does, distributed among the tenants, in one open transaction. Returns the
 * function that commits it. Does not wake the workers: see `wake`.
 */
export async function appendEvents(
  { db }: World,
  tenants: readonly Tenant[],
  count: number,
): Promise<() => Promise<void>> {
  const outbox = createOutbox({ clock: systemClock, wake: () => undefined })
  const trx = await db.startTransaction().execute()
  for (let done = 0, turn = 0; done < count; turn++) {
    const tenant = tenants[turn % tenants.length]
    if (tenant === undefined) throw new Error('there are no tenants to append events for')
    const from = done
    const length = Math.min(runLength, count - done)
    await outbox.append(
      trx,
      { accountId: tenant.accountId, mode: 'live' },
      Array.from({ length }, (_, index) => usualEventOf(from + index)),
    )
    done += length
  }
  return async () => {
    await trx.commit().execute()
  }
}

/** Wakes the workers, as another process of the service would. */
export async function wake({ db }: World): Promise<void> {
  await sql`SELECT pg_notify('postern_outbox', '')`.execute(db)
}

const settledPollMs = 20
/** Milliseconds until giving up, far longer than a round takes: a delivery has failed and waits for its retry. */
const settledLimitMs = 180_000

/**
 * Commits events, waits for their delivery and returns the seconds since the commit. Queries the database only after
 * they have arrived.
 */
export async function timeDelivery(
  world: World,
  { since, commit, arrived }: { since: Date; commit: () => Promise<void>; arrived: () => Promise<void> },
): Promise<number> {
  await commit()
  const began = performance.now()
  await wake(world)
  await Promise.race([arrived(), delay(settledLimitMs, undefined, { ref: false })])
  await untilSettled(world, since)
  return (performance.now() - began) / 1000
}

/**
 * Resolves when all events appended since `since` are fanned out, delivered and settled. Rejects after three minutes.
 */
export async function untilSettled({ db }: World, since: Date): Promise<void> {
  const events = firstIdAt('event', since)
  const deliveries = firstIdAt('delivery', since)
  const deadline = performance.now() + settledLimitMs
  while (performance.now() < deadline) {
    const { rows } = await sql<{ open: boolean }>`
      SELECT EXISTS (SELECT FROM outbox_rows WHERE event_id >= ${events})
        OR EXISTS (SELECT FROM deliveries WHERE status = 'pending' AND id >= ${deliveries}) AS open
    `.execute(db)
    if (rows[0]?.open === false) return
    await delay(settledPollMs)
  }
  throw new Error(`not all events were delivered and settled within ${settledLimitMs / 1000} s`)
}

/** Vacuums and writes a checkpoint now, so that the work left by seeding does not affect a measurement. */
export async function settleDown(world: World): Promise<void> {
  await vacuum(world)
  await sql`CHECKPOINT`.execute(world.db)
}

/**
 * Vacuums now, so that no vacuum runs during a measurement. Does not write a checkpoint, after which the WAL would
 * contain a full image of each changed page.
 */
export async function vacuum({ db }: World): Promise<void> {
  await sql`VACUUM (ANALYZE)`.execute(db)
}

function chunksOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
}
