import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { inTransaction } from '../../server/database/connection.ts'
import { startFanOutWorker } from '../../server/fan-out/worker.ts'
import { systemClock } from '../../server/lib/clock.ts'
import { createOutbox } from '../../server/outbox/append.ts'
import { startQueue } from '../../server/queue/queue.ts'
import { newId } from '../../server/shared/ids.ts'
import { createIntakes } from '../../server/webhook-delivery/scheduling/intake.ts'
import { createScheduler, defaultSettings } from '../../server/webhook-delivery/scheduling/scheduler.ts'
import { createTestDatabase } from '../support/database.ts'
import { live } from '../support/scope.ts'

test('a fan-out does not look again and again at events that another process has locked', async () => {
  const database = await createTestDatabase()
  await using stack = new AsyncDisposableStack()
  stack.defer(database.drop)
  const { db, connectionString } = database
  const queue = await startQueue({
    connectionString,
    works: false,
    onError(error) {
      throw error
    },
  })
  stack.defer(() => queue.stop())
  const accountId = newId('account', new Date())
  await db.insertInto('accounts').values({ id: accountId, name: 'Test', plan: 'scale' }).execute()
  const outbox = createOutbox({ clock: systemClock, wake: () => {} })
  const data = { subscriberId: newId('subscriber', new Date()), audienceId: newId('audience', new Date()) }
  const events = Array.from({ length: 1_000 }, () => ({ type: 'contact.deleted' as const, data }))
  await inTransaction(db, (trx) => outbox.append(trx, live(accountId), events))

  const intakes = createIntakes({ scheduler: createScheduler(defaultSettings), take: () => {} })
  let batches = 0
  const firstEnded = Promise.withResolvers<void>()
  const delivery = {
    intakes: {
      async open() {
        batches += 1
        const intake = await intakes.open()
        return {
          ...intake,
          fill(taken: Parameters<typeof intake.fill>[0]) {
            intake.fill(taken)
            firstEnded.resolve()
          },
        }
      },
    },
    lease: randomUUID(),
    isOpen: () => false,
    offer: () => {},
  }
  await inTransaction(db, async (other) => {
    await other.selectFrom('outbox_rows').select('event_id').forUpdate().execute()
    const worker = startFanOutWorker({
      db,
      queue,
      clock: systemClock,
      logger: pino({ level: 'silent' }),
      delivery,
      intervalMs: 600_000,
    })
    stack.defer(() => worker.stop())
    await firstEnded.promise
    // Time for as many statements of the fan-out.
    for (let statement = 0; statement < 20; statement++) {
      await other.selectFrom('outbox_rows').select('event_id').forUpdate().execute()
    }
    expect(batches).toBe(1)
  })
})
