import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { startApp } from '../../server/app.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { configOf, startTestService } from '../support/service.ts'
import { verdict } from './support/evidence.ts'
import { createLedger } from './support/ledger.ts'
import { addingSubscribers, startLoad } from './support/load.ts'
import { startRecorder } from './support/recorder.ts'
import { rounds, within } from './support/rounds.ts'
import { connectTester, cutSessions } from './support/sessions.ts'
import { subscribe } from './support/subscribe.ts'

/** So seldom that whatever is delivered in this test was woken for. */
const pollIntervalMs = 3_600_000
const listener = 'postern wake-ups'
const cuts = rounds({ short: 1, long: 30 })

test(`a worker is woken again after each of ${cuts} cuts of the connections that listen`, within(cuts), async () => {
  await using recorder = await startRecorder()
  await using service = await startTestService({ roles: { worker: false }, expectErrors: true })
  const { connectionString } = service.database
  await using _worker = await startApp(configOf({ roles: { api: false } }, connectionString), {
    logger: createLogger({ level: 'silent' }),
    pollIntervalMs,
  })
  await using tester = connectTester(connectionString)
  const ledger = createLedger()
  const key = service.keys.live
  await subscribe({ url: service.url, key, recorder, count: 1 })
  const load = () =>
    startLoad({
      ledger,
      url: () => service.url,
      key,
      writers: 1,
      ...addingSubscribers({ db: tester, accountId: service.accountId }),
    })

  /** Who has said LISTEN, and perhaps told something since. */
  const listening = async () => {
    const { rows } = await sql<{ pid: number }>`
      SELECT pid FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = ${listener} AND query ~ '^LISTEN|pg_notify'
    `.execute(tester)
    return rows.map((row) => row.pid)
  }

  for (let cut = 1; cut <= cuts; cut++) {
    const before = await listening()
    await using meanwhile = load()
    await meanwhile.acknowledged(1)
    expect(await cutSessions(tester, listener)).toBe(2)
    await meanwhile.acknowledged(5)
    await meanwhile.stop()
    await expect.poll(async () => (await listening()).filter((pid) => !before.includes(pid)).length).toBe(2)
    // Events whose notifications were missed are delivered, and then new ones.
    expect(await verdict({ db: tester, ledger, recorder })).toEqual([])
    await using after = load()
    await after.acknowledged(1)
    await after.stop()
    expect(await verdict({ db: tester, ledger, recorder })).toEqual([])
  }
})
