import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { type ServiceProcess, startService } from '../main/service-process.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { patienceMs } from '../support/patience.ts'
import { encryptionKey } from '../support/service.ts'
import { zipOf } from '../support/zip.ts'
import { rounds, within } from './support/rounds.ts'
import { createRandom } from './support/seeded-random.ts'

let database: TestDatabase
let service: ServiceProcess
let key: string

beforeEach(async () => {
  database = await createTestDatabase()
  service = await start()
  key = /postern_live_\w+/.exec(service.greeting)?.[0] ?? expect.fail('the service shows no key')
})
afterEach(async () => {
  await service[Symbol.asyncDispose]()
  await database.drop()
})

const start = () =>
  startService({ DATABASE_URL: database.connectionString, ENCRYPTION_KEY: encryptionKey.toString('base64') })

async function call(method: string, path: string, body?: { type: string; text: string | Buffer }): Promise<string> {
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': body.type }) },
    ...(body && { body: body.text }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path} was answered ${response.status} ${text}`)
  return text
}

/** Returns the result for a row of the file by its number. Most rows are new people. */
function kindOf(row: number): 'failed' | 'skipped' | 'suppressed' | 'created' {
  if (row % 50 === 7) return 'failed'
  // The one before it once more.
  if (row % 40 === 9) return 'skipped'
  return row % 60 === 1 ? 'suppressed' : 'created'
}

function lineOf(row: number): string {
  const number = kindOf(row) === 'skipped' ? row - 1 : row
  const address = kindOf(row) === 'failed' ? `p${row} at example.com` : `p${number}@example.com`
  return `${address},Person ${row},${kindOf(row) === 'suppressed' ? 'unsubscribed' : 'active'}`
}

const identified = z.object({ id: z.string() })
const kills = rounds({ short: 2, long: 40 })
const rows = rounds({ short: 8_000, long: 150_000 })
/** After the first batch that a process has done it is killed, at once or this much later at most. Milliseconds. */
const longestRestMs = 150
const pollMs = 5

/** Kills the service again and again until the import is done, and returns how often it was in the middle. */
async function killUntilDone(random: ReturnType<typeof createRandom>): Promise<number[]> {
  const middles: number[] = []
  let done = 0
  for (let kill = 1; kill <= kills; kill++) {
    const now = await readMore(done)
    if (now.hasEnded) break
    if (random.int(2) === 0) await delay(random.number(longestRestMs))
    service.child.kill('SIGKILL')
    await service.exit
    const then = await progress()
    done = then.read
    if (!then.hasEnded) middles.push(then.read)
    // As time does, after which others take the import of a process that died.
    await sql`UPDATE imports SET leased_until = 'epoch' WHERE lease IS NOT NULL`.execute(database.db)
    service = await start()
  }
  while (!(await readMore(done)).hasEnded) ({ read: done } = await progress())
  return middles
}

async function progress(): Promise<{ read: number; hasEnded: boolean }> {
  const { rows } = await sql<{ read: number; ended: boolean }>`
    SELECT rows_read::int AS read, ended_at IS NOT NULL AS ended FROM imports
  `.execute(database.db)
  const [row] = rows
  return { read: row?.read ?? 0, hasEnded: row?.ended === true }
}

/** Waits until more than so many rows are done, or all. */
async function readMore(than: number): Promise<{ read: number; hasEnded: boolean }> {
  for (const since = performance.now(); performance.now() - since < patienceMs; await delay(pollMs)) {
    const now = await progress()
    if (now.read > than || now.hasEnded) return now
  }
  throw new Error(`the import stays at ${JSON.stringify(await progress())}`)
}

test(`an import is gone on with when the service is killed ${kills} times, each row once`, within(kills), async () => {
  const random = createRandom(20_260_302)
  const list = await call('POST', '/v1/audiences', { type: 'application/json', text: '{"name":"News"}' })
  const { id: audienceId } = identified.parse(JSON.parse(list))
  const numbers = Array.from({ length: rows }, (_, index) => index + 1)
  const text = `email,name,status\n${numbers.map(lineOf).join('\n')}\n`
  const topic = await call('POST', '/v1/topics', {
    type: 'application/json',
    text: '{"name":"News","default":"opt_in"}',
  })
  const query = `audienceId=${audienceId}&topics=${identified.parse(JSON.parse(topic)).id}`
  const { id } = identified.parse(JSON.parse(await call('POST', `/v1/imports?${query}`, { type: 'text/csv', text })))

  expect((await killUntilDone(random)).length).toBeGreaterThan(0)

  const of = (kind: ReturnType<typeof kindOf>) => numbers.filter((row) => kindOf(row) === kind)
  expect(JSON.parse(await call('GET', `/v1/imports/${id}`))).toMatchObject({
    status: 'completed',
    rowsRead: rows,
    created: of('created').length,
    updated: 0,
    skipped: of('skipped').length,
    suppressed: of('suppressed').length,
    failed: of('failed').length,
  })
  // Each person is there, each suppression, and each event once.
  const { db } = database
  const count = (table: 'contacts' | 'subscribers' | 'topic_choices' | 'suppressions') =>
    db
      .selectFrom(table)
      .select(({ fn }) => fn.countAll<string>().as('count'))
      .executeTakeFirstOrThrow()
  expect(await count('contacts')).toEqual({ count: String(of('created').length) })
  expect(await count('subscribers')).toEqual({ count: String(of('created').length) })
  expect(await count('topic_choices')).toEqual({ count: String(of('created').length) })
  expect(await count('suppressions')).toEqual({ count: String(of('suppressed').length) })
  const events = await sql<{ type: string; count: string; people: string }>`
    SELECT type, count(*), count(DISTINCT body::jsonb #>> '{data,email}') AS people FROM events GROUP BY type ORDER BY type
  `.execute(db)
  const each = { count: String(of('created').length), people: String(of('created').length) }
  expect(events.rows.filter(({ type }) => type === 'subscriber.added' || type === 'contact.created')).toEqual([
    { type: 'contact.created', ...each },
    { type: 'subscriber.added', ...each },
  ])
  const failed = (await call('GET', `/v1/imports/${id}/failed-rows`)).trimEnd().split('\r\n').slice(1)
  expect(failed.map((line) => Number(line.split(',').at(-2)))).toEqual(of('failed'))
})

test(
  `a ZIP is gone on with in each of its files when the service is killed ${kills} times`,
  within(kills),
  async () => {
    const list = await call('POST', '/v1/audiences', { type: 'application/json', text: '{"name":"News"}' })
    const { id: audienceId } = identified.parse(JSON.parse(list))
    // People who left come first, so that most kills are in the second file.
    const left = Math.floor(rows / 10)
    const csvOf = (head: string, count: number, line: (row: number) => string) =>
      `${head}\n${Array.from({ length: count }, (_, index) => line(index + 1)).join('\n')}\n`
    const zip = zipOf([
      {
        name: 'subscribed_email_audience_export_1.csv',
        content: csvOf('Email Address', rows, (row) =>
          row % 50 === 7 ? `p${row} at example.com` : `p${row}@example.com`,
        ),
      },
      {
        name: 'unsubscribed_email_audience_export_1.csv',
        content: csvOf('Email Address,UNSUB_TIME', left, (row) => `p${10 * row}@example.com,2026-01-01`),
      },
    ])
    const { id } = identified.parse(
      JSON.parse(await call('POST', `/v1/imports?audienceId=${audienceId}`, { type: 'application/zip', text: zip })),
    )
    const middles = await killUntilDone(createRandom(20_260_303))
    expect(middles.some((read) => read > left)).toBe(true)
    const failed = Array.from({ length: rows }, (_, index) => index + 1).filter((row) => row % 50 === 7)
    const people = rows - left - failed.length
    expect(JSON.parse(await call('GET', `/v1/imports/${id}`))).toMatchObject({
      status: 'completed',
      rowsRead: rows + left,
      created: people,
      updated: 0,
      skipped: 0,
      // Once by their own file, and once by the other.
      suppressed: 2 * left,
      failed: failed.length,
    })
    const { rows: counts } = await sql`
    SELECT (SELECT count(*)::int FROM contacts) AS contacts, (SELECT count(*)::int FROM subscribers) AS subscribers,
      (SELECT count(*)::int FROM suppressions) AS suppressions,
      (SELECT count(*)::int FROM events WHERE type = 'contact.created') AS created
  `.execute(database.db)
    expect(counts).toEqual([{ contacts: people, subscribers: people, suppressions: left, created: people }])
    const lines = (await call('GET', `/v1/imports/${id}/failed-rows`)).trimEnd().split('\r\n').slice(1)
    expect(lines.map((line) => Number(line.split(',').at(-2)))).toEqual(failed)
  },
)
