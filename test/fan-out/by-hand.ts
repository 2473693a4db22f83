import type { EventTypeName } from '../../contract/event-types.ts'
import { inTransaction } from '../../server/database/connection.ts'
import { type FanOutMeans, fanOutBatch } from '../../server/fan-out/fan-out.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { takingFor } from '../support/flows.ts'
import { live } from '../support/scope.ts'

/* A database with an outbox and a queue, in which the fan-out is done by hand. */

export let database: TestDatabase
export let queue: Queue

export async function startFanOut(): Promise<void> {
  database = await createTestDatabase()
  queue = await startQueue({
    connectionString: database.connectionString,
    works: false,
    onError: (error) => {
      throw error
    },
  })
}

export async function stopFanOut(): Promise<void> {
  await queue.stop()
  await database.drop()
}

const outbox = createOutbox({ clock: systemClock, wake: () => {} })
const data = { subscriberId: newId('subscriber', new Date()), audienceId: newId('audience', new Date()) }

export async function addAccount(webhooks: { events: EventTypeName[]; disabled?: boolean }[]) {
  const accountId = newId('account', new Date())
  await database.db.insertInto('accounts').values({ id: accountId, name: 'Test', plan: 'scale' }).execute()
  const ids: string[] = []
  for (const { events, disabled = false } of webhooks) {
    const id = newId('webhook', new Date())
    ids.push(id)
    await database.db
      .insertInto('webhooks')
      .values({
        id,
        account_id: accountId,
        url: 'https://example.com/',
        events,
        secret: Buffer.from('sealed'),
        description: null,
        status: disabled ? 'disabled' : 'enabled',
        disabled_reason: disabled ? 'manual' : null,
        failing_since: null,
        previous_secret: null,
        previous_secret_expires_at: null,
      })
      .execute()
  }
  return { accountId, ids }
}

export async function emit(accountId: string, count: number): Promise<string[]> {
  return inTransaction(database.db, (trx) =>
    outbox.append(
      trx,
      live(accountId),
      Array.from({ length: count }, () => ({ type: 'contact.deleted' as const, data })),
    ),
  )
}

export async function fanOutAll(): Promise<void> {
  while ((await fanOutBatch({ db: database.db, queue, clock: systemClock })).events > 0);
}

export async function deliveriesOf(accountId: string) {
  return database.db.selectFrom('deliveries').selectAll().where('account_id', '=', accountId).execute()
}

/** A worker that takes no more than `max` events of this kind. */
export function limitedTo(max: number, accountId: string): NonNullable<FanOutMeans['taking']> {
  const taking = takingFor(0)
  const limits = [{ accountId, mode: 'live' as const, type: 'contact.deleted', max }]
  return { ...taking, intake: { ...taking.intake, limits } }
}
