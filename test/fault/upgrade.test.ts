import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import type { Db } from '../../server/database/connection.ts'
import { firstFlow } from '../../server/queue/flow-jobs.ts'
import { idOfUuid, uuidOf } from '../../server/shared/ids.ts'
import { type Env, type ServiceProcess, startService } from '../main/service-process.ts'
import { createTestDatabase } from '../support/database.ts'
import { encryptionKey } from '../support/service.ts'
import { createLedger } from './support/ledger.ts'
import { startLoad } from './support/load.ts'
import { type OldBacklog, unpackOlderVersion, whyNoOlderVersion, writeOldBacklog } from './support/older-version.ts'
import { rounds, within } from './support/rounds.ts'
import { connectTester } from './support/sessions.ts'

/*
 * A process of the version before flows goes on beside one of this version, which migrates, while deliveries wait in
 * the old form. UPGRADE_JOBS says how many: 1,000,000 take some minutes and 3 GB of disk.
 */

const jobs = Number(process.env.UPGRADE_JOBS ?? rounds({ short: 2_000, long: 20_000 }))
const ends = rounds<NodeJS.Signals[]>({ short: ['SIGTERM'], long: ['SIGTERM', 'SIGKILL'] })
const reason = whyNoOlderVersion()

const minutes = (count: number) => new Date(Date.now() + count * 60_000)

/** The deliveries that wait for each webhook: their share of all, and their allowed statuses at the end. */
const parts = {
  published: { share: 0, dueAt: null, becomes: ['succeeded'] },
  fresh: { share: 0.3, dueAt: null, becomes: ['succeeded'] },
  retries: { share: 0.1, dueAt: minutes(-1), becomes: ['succeeded'] },
  slow: { share: 0.05, dueAt: null, becomes: ['succeeded'] },
  moving: { share: 0.02, dueAt: null, becomes: ['succeeded'] },
  // Answered 500, and due again some minutes later.
  failing: { share: 0.03, dueAt: null, becomes: ['pending'] },
  // Some are sent before it is deleted.
  deleted: { share: 0.05, dueAt: null, becomes: ['canceled', 'succeeded'] },
  later: { share: 0.45, dueAt: minutes(24 * 60), becomes: ['pending'] },
} as const
type Part = keyof typeof parts
const names = Object.keys(parts) as Part[]

const title = `an upgrade with ${jobs} jobs in the old form${reason === null ? '' : ` (not here: ${reason})`}`
describe.skipIf(reason !== null)(title, () => {
  test.each(ends)(
    'an upgrade loses nothing, doubles only what was in hand at the end of the old process, by %s, and leaves nothing stuck',
    within(2 + jobs / 10_000),
    upgrade,
  )
})

async function upgrade(end: NodeJS.Signals): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const database = await createTestDatabase()
  stack.defer(() => database.drop())
  const db = connectTester(database.connectionString)
  stack.defer(() => db.destroy())
  for (const schema of ['pgboss', 'public']) await sql`DROP SCHEMA ${sql.ref(schema)} CASCADE`.execute(db)
  await sql`CREATE SCHEMA public`.execute(db)
  const older = stack.use(await unpackOlderVersion())
  const endpoint = stack.use(await startEndpoint())
  const env: Env = {
    DATABASE_URL: database.connectionString,
    ENCRYPTION_KEY: encryptionKey.toString('base64'),
    RATE_LIMITS: 'scale=1000000000',
    WEBHOOK_ALLOW_HTTP: 'true',
    WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true',
    LOG_LEVEL: 'error',
  }

  const first = await startService(env, { directory: older.directory })
  const [key = ''] = /postern_live_\w+/.exec(first.greeting) ?? []
  for (const name of names) {
    const events = [name === 'published' ? 'subscriber.added' : 'contact.deleted']
    await ask(first, key, 'POST ', { url: `${endpoint.url}/${name}`, events })
  }
  await first[Symbol.asyncDispose]()
  const webhooks = await prepare(db)
  const idOf = (part: Part) => [...webhooks].find(([, name]) => name === part)?.[0] ?? ''

  // Slow, so that much is left in the old form.
  const old = stack.use(await startService({ ...env, DELIVERY_CONCURRENCY: '8' }, { directory: older.directory }))
  const running: ServiceProcess[] = [old]
  const ledger = createLedger()
  let turn = 0
  const load = stack.use(
    startLoad({
      ledger,
      key,
      url: () => running[turn++ % running.length]?.url ?? '',
      operation: { path: '/v1/subscribers', body: (email) => ({ email }), status: 201 },
    }),
  )
  await load.acknowledged(20)
  await ask(old, key, `DELETE /${idOf('deleted')}`)
  const present = stack.use(await startService(env))
  running.push(present)
  for (let moves = 1; moves <= 20; moves++) {
    const url = `${endpoint.url}/moving/${moves}`
    await ask(moves % 2 === 0 ? old : present, key, `PATCH /${idOf('moving')}`, { url })
    await load.acknowledged(20)
  }
  running.shift()
  // Nothing is begun between the look and the end.
  old.child.kill('SIGSTOP')
  const inHand = await handOf(db)
  old.child.kill(end)
  old.child.kill('SIGCONT')
  await old.exit
  await load.acknowledged(20)
  await load.stop()

  const isPendingForLong = [idOf('failing'), idOf('later')]
  // Claims of the process that was killed lapse after 20 to 35 s.
  const patience = { timeout: 90_000 + jobs, interval: 100 }
  await expect.poll(() => left(db, isPendingForLong), patience).toEqual({ oldForm: 0, due: 0, outbox: 0, kept: 0 })
  expect(await wrong(db, { webhooks, inHand, times: endpoint.times })).toEqual([])
  expect(await lost(db, ledger.marks)).toEqual([])
  // All that may go wrong is a deadlock with the migration, of which one side begins again.
  const errors = [...old.lines, ...present.lines].filter((line) => line.startsWith('{') && !line.includes('"40P01"'))
  expect(errors).toEqual([])
}

/** Writes what waits. Returns the webhooks by their ids. */
async function prepare(db: Db): Promise<Map<string, Part>> {
  await sql`UPDATE webhooks SET slow = true WHERE url LIKE '%/slow'`.execute(db)
  const { rows } = await sql<OldBacklog['webhook'] & { part: Part }>`
    SELECT id, account_id, lane, slow, substring(url FROM '[a-z]+$') AS part FROM webhooks
  `.execute(db)
  for (const { part, ...webhook } of rows) {
    const { share, dueAt } = parts[part]
    await writeOldBacklog(db, { webhook, count: Math.round(jobs * share), dueAt })
  }
  return new Map(rows.map(({ id, part }) => [id, part]))
}

/** Deliveries that processes have in hand. */
async function handOf(db: Db): Promise<Set<string>> {
  const { rows } = await sql<{ uuid: string }>`
    SELECT id AS uuid FROM pgboss.job WHERE name = 'deliveries' AND state = 'active'
  `.execute(db)
  const { rows: kept } = await sql<{ id: string }>`
    SELECT jsonb_array_elements_text(data -> 'deliveryIds') AS id FROM pgboss.job
    WHERE name = 'kept' AND state <= 'active'
  `.execute(db)
  return new Set([...rows.map(({ uuid }) => idOfUuid('delivery', uuid)), ...kept.map(({ id }) => id)])
}

async function left(db: Db, isPendingForLong: readonly string[]) {
  const { rows } = await sql`
    SELECT
      (SELECT count(*) FROM pgboss.job WHERE name = 'deliveries' AND priority > ${-firstFlow})::int AS "oldForm",
      (SELECT count(*) FROM deliveries WHERE status = 'pending'
        AND (NOT webhook_id = ANY(${isPendingForLong}::text[]) OR next_attempt_at < now()))::int AS due,
      (SELECT count(*) FROM outbox_rows)::int AS outbox,
      (SELECT count(*) FROM pgboss.job WHERE name = 'kept' AND state <= 'active')::int AS kept
  `.execute(db)
  return rows[0]
}

type Seen = { webhooks: ReadonlyMap<string, Part>; inHand: ReadonlySet<string>; times: ReadonlyMap<string, number> }

/** Returns the faults of deliveries and their jobs, in words. */
async function wrong(db: Db, { webhooks, inHand, times }: Seen): Promise<string[]> {
  const { rows: queued } = await sql<{ id: string; due: Date }>`
    SELECT id, start_after AS due FROM pgboss.job WHERE name = 'deliveries'
  `.execute(db)
  const dueOf = new Map(queued.map(({ id, due }) => [id, due.getTime()]))
  const deliveries = await db
    .selectFrom('deliveries')
    .select(['id', 'webhook_id', 'event_id', 'status', 'attempt_count', 'next_attempt_at'])
    .execute()
  return deliveries.flatMap((delivery) => {
    const part = webhooks.get(delivery.webhook_id) ?? 'published'
    const becomes: readonly string[] = parts[part].becomes
    const before = parts[part].dueAt === null ? 0 : 1
    const sent = times.get(delivery.event_id) ?? 0
    // With what is in hand, as the old process ends, one attempt may be made twice, or not have been written down.
    const most = delivery.attempt_count - before + (inHand.has(delivery.id) ? 1 : 0)
    const faults = [
      becomes.includes(delivery.status) ? '' : `is ${delivery.status}`,
      sent <= most ? '' : `was sent ${sent} times`,
      delivery.status === 'succeeded' && sent === 0 ? 'was not sent' : '',
      part === 'later' && sent > 0 ? 'was sent too early' : '',
      // An attempt that was made twice is one attempt.
      delivery.status === 'succeeded' && delivery.attempt_count - before !== 1
        ? `has ${delivery.attempt_count} attempts`
        : '',
      dueOf.get(uuidOf(delivery.id)) === delivery.next_attempt_at?.getTime()
        ? ''
        : 'has no job for its time, or one for nothing',
    ]
    return faults.filter(Boolean).map((fault) => `${delivery.id} for ${part} ${fault}`)
  })
}

/** Writes that were acknowledged, and of which there is no delivery. */
async function lost(db: Db, marks: ReadonlyMap<string, string>): Promise<string[]> {
  const { rows } = await sql<{ mark: string }>`
    SELECT e.body::jsonb #>> '{data,email}' AS mark FROM events e JOIN deliveries d ON d.event_id = e.id
    WHERE e.type = 'subscriber.added'
  `.execute(db)
  const made = new Set(rows.map(({ mark }) => mark))
  return [...marks].flatMap(([mark, fate]) => (fate === 'acknowledged' && !made.has(mark) ? [mark] : []))
}

/** @param what Method and path. */
async function ask({ url }: ServiceProcess, key: string, what: string, body?: unknown): Promise<void> {
  const [method = '', path] = what.split(' ')
  const response = await fetch(`${url}/v1/webhooks${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(`${what} was answered ${response.status}: ${await response.text()}`)
}

/** Counts how often each event came. After 100 ms, so that much is in flight, it answers 200, or 500. */
async function startEndpoint(): Promise<AsyncDisposable & { url: string; times: ReadonlyMap<string, number> }> {
  const times = new Map<string, number>()
  const server = createServer((request, response) => {
    const id = String(request.headers['webhook-id'])
    times.set(id, (times.get(id) ?? 0) + 1)
    request.resume()
    setTimeout(() => response.writeHead(request.url === '/failing' ? 500 : 200).end(), 100)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    times,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
