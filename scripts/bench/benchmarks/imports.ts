import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import { newId } from '../../../server/shared/ids.ts'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { csvFile, declareProperties } from '../csv-file.ts'
import { type Service, startCluster, startLoad, startReceiver, startService, type World } from '../lab.ts'
import { watchMemory } from '../memory.ts'
import { formatNumber } from '../report.ts'
import { costsOf, inTurn, valuesOf } from '../rounds.ts'
import { addAudience, addTenants, settleDown, type Tenant, untilSettled } from '../seed.ts'
import { median, quantile, ratio } from '../statistics.ts'
import { addSubscriber, commitTimes } from './latency.ts'

/** Rows of the file at size 1. */
const allRows = 1_000_000
/** Rows of one INSERT of the baseline: as many as the importer does in a transaction. */
const insertedAtOnce = 1_000
/** Events a second of the other account, alone and beside an import. */
const calmRate = 10
const connections = 16
const pollMs = 100

export const imports: Benchmark = {
  name: 'imports',
  measures:
    'a CSV of 1,000,000 people through POST /v1/imports, with and without their events; another account meanwhile',
  baseline: 'the same people written by INSERTs of 1,000, and the other account alone',
  rounds: 1,
  seconds: 20,
  run,
}

type Measured = { rate: number; aboveIdleMiB: number; p99: number }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, size } = context
  const cluster = await startCluster(processes, { settings: { track_commit_timestamp: 'on', max_wal_size: '4GB' } })
  const receiver = await startReceiver(processes)
  const load = await startLoad(processes)
  const count = Math.max(1, Math.round(allRows * size))

  const prepared = await cluster.create('prepared')
  const [importing, calm] = await addTenants(prepared, [{ urls: [] }, { urls: [`${receiver.url}/ok/0`] }])
  if (importing === undefined || calm === undefined) throw new Error('there are no two accounts')
  const audienceId = await addAudience(prepared, importing)
  await declareProperties(prepared, importing)
  await settleDown(prepared)
  await prepared.close()

  /** Runs `work` on a fresh copy of the database. */
  async function onCopy(side: string, work: (world: World) => Promise<Measured>): Promise<Measured> {
    const world = await cluster.copy(prepared.name, side)
    try {
      return await work(world)
    } finally {
      await world.close()
      await cluster.drop(world.name)
    }
  }

  /** Returns the times from commit to arrival of the events of the other account, which end with `ending`. */
  async function calmLatencies(world: World, service: Service, ending: AbortSignal | null): Promise<number[]> {
    await receiver.reset('arrivals')
    const since = new Date()
    const options = { origins: [service.url], requests: [addSubscriber(calm as Tenant)], connections, rate: calmRate }
    const running = load.run({ ...options, seconds: ending === null ? seconds : 3_600 }, 201)
    ending?.addEventListener('abort', () => void load.stop(), { once: true })
    const { latencies } = await running
    await untilSettled(world, since)
    const arrivals = await receiver.arrivals()
    if (arrivals.length !== latencies.length)
      throw new Error(`of ${latencies.length} events, ${arrivals.length} came in`)
    const committed = await commitTimes(world, 'events', arrivals)
    return arrivals.map(([id, at]) => at - (committed.get(id) ?? Number.NaN))
  }

  async function withService(side: string, work: (world: World, service: Service) => Promise<Measured>) {
    return onCopy(side, async (world) => {
      await using service = await startService(processes, world)
      return await work(world, service)
    })
  }

  const importOf = (events: boolean) =>
    withService(events ? 'events' : 'silent', async (world, service) => {
      await using memory = watchMemory(service)
      const ending = new AbortController()
      const beside = calmLatencies(world, service, ending.signal)
      const began = performance.now()
      const id = await startImport(service, importing, { audienceId, events, count })
      const shown = await untilImported(service, importing, id)
      const took = (performance.now() - began) / 1000
      ending.abort()
      const latencies = await beside
      if (shown.created !== count) throw new Error(`of ${count} people, ${shown.created} were created`)
      const { idleBytes, peakBytes } = memory.stop()
      return { rate: count / took, aboveIdleMiB: (peakBytes - idleBytes) / 2 ** 20, p99: quantile(latencies, 0.99) }
    })

  const sides = await inTurn<'import' | 'import, events=false' | 'INSERT' | 'alone', Measured>(
    context,
    {
      import: { measure: () => importOf(true) },
      'import, events=false': { measure: () => importOf(false) },
      INSERT: {
        measure: () =>
          onCopy('bare', async (world) => ({
            rate: await insertPeople(world, importing, { audienceId, count }),
            aboveIdleMiB: Number.NaN,
            p99: Number.NaN,
          })),
      },
      alone: {
        measure: () =>
          withService('alone', async (world, service) => ({
            rate: calmRate,
            aboveIdleMiB: Number.NaN,
            p99: quantile(await calmLatencies(world, service, null), 0.99),
          })),
      },
    },
    ({ rate, p99 }) => `${Math.round(rate)}/s, p99 of the other account ${formatNumber(p99)} ms`,
  )

  const ratesOf = (side: keyof typeof sides) => valuesOf(sides[side], ({ rate }) => rate)
  const p99Of = (side: keyof typeof sides) => valuesOf(sides[side], ({ p99 }) => p99)
  const memoryOf = (side: keyof typeof sides) => valuesOf(sides[side], ({ aboveIdleMiB }) => aboveIdleMiB)
  const importSides = ['import', 'import, events=false'] as const
  return {
    measurements: [
      ...[...importSides, 'INSERT' as const].map((side) => ({
        side,
        figure: 'rows',
        unit: '/s',
        values: ratesOf(side),
      })),
      ...importSides.map((side) => ({ side, figure: 'memory above idle', unit: 'MiB', values: memoryOf(side) })),
      ...[...importSides, 'alone' as const].map((side) => ({
        side,
        figure: 'p99 of the other account',
        unit: 'ms',
        values: p99Of(side),
      })),
    ],
    targets: [
      ...importSides.map((side) => ({
        figure: `seconds for 1,000,000 rows, ${side}`,
        unit: 's',
        value: allRows / median(ratesOf(side)),
        goal: { atMost: 120 },
      })),
      { figure: 'rows with events', unit: '/s', value: median(ratesOf('import')), goal: { atLeast: 10_000 } },
      {
        figure: 'import without events to INSERT',
        value: ratio(ratesOf('import, events=false'), ratesOf('INSERT')),
        goal: { atLeast: 0.3 },
      },
      {
        figure: 'p99 of the other account, beside an import to alone',
        value: ratio(p99Of('import'), p99Of('alone')),
        goal: { atMost: 20 },
      },
    ],
    costs: costsOf(sides),
    notes: [
      `The file has ${formatNumber(count)} rows with a name and three properties. Measured from the request until the import is completed, in which each row is read, checked and written with its contact; an event for the person and one for the contact with each, unless \`events=false\`.`,
      `Meanwhile another account adds ${calmRate} people a second; its time is from the commit of the event until its webhook has it.`,
      'Memory is that of the process of the service at this one size, so it does not tell whether it grows with the file.',
      'INSERT writes the same people and contacts in transactions of 1,000 rows each. It emits no events, and does not check which people exist already.',
    ],
  }
}

const created = z.object({ id: z.string() })
const shownImport = z.object({ status: z.string(), created: z.number(), failureReason: z.string().nullable() })

/** Sends the file and returns the id of its import. */
async function startImport(
  service: Service,
  { key }: Tenant,
  { audienceId, events, count }: { audienceId: string; events: boolean; count: number },
): Promise<string> {
  const response = await fetch(`${service.url}/v1/imports?audienceId=${audienceId}&events=${events}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'text/csv' },
    body: ReadableStream.from(csvFile(count)),
    duplex: 'half',
  })
  if (response.status !== 202) throw new Error(`the file was answered ${response.status}: ${await response.text()}`)
  return created.parse(await response.json()).id
}

async function untilImported(service: Service, { key }: Tenant, id: string) {
  for (;;) {
    const response = await fetch(`${service.url}/v1/imports/${id}`, { headers: { authorization: `Bearer ${key}` } })
    const shown = shownImport.parse(await response.json())
    if (shown.status === 'completed') return shown
    if (['failed', 'canceled'].includes(shown.status)) throw new Error(`the import ended: ${shown.failureReason}`)
    await delay(pollMs)
  }
}

/** Writes the people of the file by INSERTs alone. Returns rows a second. */
async function insertPeople(
  { db }: World,
  { accountId }: Tenant,
  { audienceId, count }: { audienceId: string; count: number },
): Promise<number> {
  const began = performance.now()
  for (let from = 0; from < count; from += insertedAtOnce) {
    const at = new Date()
    const ids = Array.from({ length: Math.min(insertedAtOnce, count - from) }, () => newId('subscriber', at))
    await sql`
      WITH given AS (
        SELECT id, ${from} + number - 1 AS n FROM unnest(${ids}::text[]) WITH ORDINALITY AS i (id, number)
      ), person AS (
        INSERT INTO subscribers (id, account_id, email, email_key, first_name, last_name, properties, created_at, updated_at)
        SELECT id, ${accountId}, address, address, 'Ada', 'Lovelace',
          jsonb_build_object('plan', (ARRAY['free', 'pro', 'team'])[1 + n % 3], 'score', n % 100,
            'since', '2026-02-' || lpad((1 + n % 28)::text, 2, '0')), ${at}, ${at}
        FROM given, LATERAL (SELECT 'reader-' || n || '@mail-' || n % 50 || '.example' AS address) a
        RETURNING id
      )
      INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
      SELECT ${audienceId}, id, ${accountId}, 'active', ${at}, ${at} FROM person
    `.execute(db)
  }
  return (count * 1000) / (performance.now() - began)
}
