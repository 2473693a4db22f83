import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Db } from '../../server/database/connection.ts'
import { answer, type Behaviour } from '../support/receiver.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { verdict } from './support/evidence.ts'
import { createLedger, type Ledger } from './support/ledger.ts'
import { addingSubscribers, startLoad } from './support/load.ts'
import { type Recorder, startRecorder } from './support/recorder.ts'
import { rounds, within } from './support/rounds.ts'
import { connectTester, cutSessions, startHolder } from './support/sessions.ts'
import { subscribe } from './support/subscribe.ts'

/*
 * Conflicts with the transactions of others, raised by PostgreSQL itself: it undoes the work of the
 * service, which must be done again.
 */

let service: TestService
let recorder: Recorder
let ledger: Ledger
let tester: Db

beforeEach(async () => {
  recorder = await startRecorder()
  ledger = createLedger()
  service = await startTestService({ expectErrors: true })
  tester = connectTester(service.database.connectionString)
  await subscribe({ url: service.url, key: service.keys.live, recorder, count: 2 })
})
afterEach(async () => {
  await tester.destroy()
  await service.stop()
  await recorder[Symbol.asyncDispose]()
})

const load = (writers: number) =>
  startLoad({
    ledger,
    url: () => service.url,
    key: service.keys.live,
    writers,
    ...addingSubscribers({ db: tester, accountId: service.accountId }),
  })

const judged = () => verdict({ db: tester, ledger, recorder })

/** How often the service has logged an error with this SQLSTATE. */
const logged = (code: string) => service.logged.filter((line) => line.includes(`"${code}"`)).length

/** Keeps what arrives unanswered until it is told to answer. */
function keepWaiting(): () => void {
  const held: Parameters<Behaviour>[0][] = []
  recorder.respond((exchange) => held.push(exchange))
  return () => {
    recorder.respond(answer(200))
    for (const exchange of held) answer(200)(exchange)
  }
}

const manyWrites = rounds({ short: 100, long: 5_000 })

test(`${manyWrites} writes and their deliveries on a database whose default is serializable`, within(10), async () => {
  const name = new URL(service.database.connectionString).pathname.slice(1)
  await sql`ALTER DATABASE ${sql.id(name)} SET default_transaction_isolation = 'serializable'`.execute(tester)
  await cutSessions(tester)
  await using writing = load(8)
  await writing.acknowledged(manyWrites)
  await writing.stop()
  expect(await judged()).toEqual([])
})

const findPending = () => tester.selectFrom('deliveries').select('id').where('status', '=', 'pending')

const conflicts = rounds({ short: 1, long: 20 })

/** Has a write delivered to both webhooks, and leaves them unanswered until it is told to answer them. */
async function deliverBoth(): Promise<() => void> {
  const pending = findPending()
  const before = recorder.arrivals.length
  const release = keepWaiting()
  const writing = load(1)
  await writing.acknowledged(1)
  await writing.stop()
  await expect.poll(() => recorder.arrivals.length).toBeGreaterThanOrEqual(before + 2)
  // Deliveries whose attempts take long are stored before the attempts end.
  await expect.poll(async () => (await pending.execute()).length).toBe(2)
  return release
}

/** Until a settlement has locked a delivery. */
async function untilSettling(): Promise<void> {
  const pending = findPending()
  while ((await pending.forUpdate().skipLocked().execute()).length === (await pending.execute()).length);
}

test('a settlement that loses a deadlock is made again', within(conflicts), async () => {
  for (let time = 1; time <= conflicts; time++) {
    const release = await deliverBoth()
    await using holder = await startHolder(service.database.connectionString)
    // The service looks for deadlocks first, and so is the one to give way.
    await holder.run("SET LOCAL deadlock_timeout = '1 min'")
    // The attempts that the settlement is about to write, once it has the deliveries.
    await holder.run(`
      INSERT INTO attempts (delivery_id, number, started_at, duration_ms)
      SELECT id, attempt_count + 1, now(), 1 FROM deliveries WHERE status = 'pending'
    `)
    release()
    await untilSettling()
    await holder.run('SELECT FROM deliveries FOR UPDATE')
    await expect.poll(() => logged('40P01')).toBeGreaterThanOrEqual(time)
  }
  expect(await judged()).toEqual([])
})
