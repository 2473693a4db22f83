import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { recover } from '../../server/delivery/recover.ts'
import type { Queue } from '../../server/queue/queue.ts'
import { createTurns } from '../../server/queue/turns.ts'
import { startEngine } from '../support/engine.ts'
import { untilSomebodyWaits } from '../support/locks.ts'

/** More than one transaction of a recovery takes. */
const failedBefore = 1_000
const failedAfter = 10

test('two recoveries of one webhook at once leave nothing out', async () => {
  await using engine = await startEngine()
  await engine.workers.stop(1_000)
  const { db } = engine
  const webhookId = await engine.addWebhook('http://127.0.0.1:9/')
  const since = engine.clock.now()
  await engine.emit(failedBefore)
  await engine.fanOut()
  await engine.advance(60)
  const untilFirst = engine.clock.now()
  await engine.advance(60)
  await engine.emit(failedAfter)
  await engine.fanOut()
  await sql`UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, completed_at = now()`.execute(db)
  await sql`DELETE FROM pgboss.job WHERE name = 'deliveries'`.execute(db)

  const taskUntil = (until: Date) => ({ webhookId, since: since.toISOString(), until: until.toISOString() })
  const wake = () => undefined
  let second: Promise<void> | undefined
  const queue: Queue = {
    ...engine.queue,
    async put(trx, deliveries) {
      // The second begins while the first is at its work.
      if (second === undefined) {
        second = recover({ db, queue: engine.queue, turns: createTurns(), wake }, taskUntil(engine.clock.now()))
        await untilSomebodyWaits(db)
      }
      await engine.queue.put(trx, deliveries)
    },
  }
  await recover({ db, queue, turns: createTurns(), wake }, taskUntil(untilFirst))
  await second

  const rows = await engine.deliveriesOf(webhookId, () => true)
  expect(rows).toHaveLength(failedBefore + failedAfter)
  expect(rows.filter((row) => row.status !== 'pending')).toEqual([])
  const ids = rows.map((row) => row.id)
  expect(await engine.queue.missing(db, ids)).toEqual([])
})
