import { sql } from 'kysely'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { type Load, type Service, startCluster, startLoad, startService, type World } from '../lab.ts'
import { listRequests } from '../list-requests.ts'
import { type ListedAccount, writeListedRows } from '../list-rows.ts'
import { formatNumber } from '../report.ts'
import { sizesOf } from '../sizes.ts'
import { median, quantile } from '../statistics.ts'

/** Emails, events and deliveries of the large account, each, at size 1; and of the small side. */
const largeCount = 10_000_000
const smallCount = 10_000
/** Requests of one kind in a round, one after the other. */
const requestsPerRound = 60
/** Rows of a page that the requests ask for: what the screens ask for. */
const pageSize = 50
/** Most buffers that one request may read, however many rows there are: a page of rows that lie far apart, and indexes. */
const maxBuffers = 5_000

export const lists: Benchmark = {
  name: 'lists',
  measures:
    'the requests of the screens, of an account with 10,000,000 emails, events and deliveries among 1,000 accounts',
  baseline: 'the same with 10,000 of each',
  rounds: 5,
  seconds: 2,
  run,
}

type Side = { world: World; account: ListedAccount; service: Service }
/** The measurements of one request at one side. */
type Figures = { latencies: number[]; buffers: number[] }
type Compared = { name: string; large: Figures; small: Figures }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, rounds, seconds, size, progress } = context
  const cluster = await startCluster(processes, {
    settings: {
      // Counts the buffers that statements read.
      shared_preload_libraries: 'pg_stat_statements',
      // Rows are written quicker. A crash would break the database, which is deleted at the end anyway.
      max_wal_size: '4GB',
      full_page_writes: 'off',
      fsync: 'off',
    },
  })
  const count = Math.round(largeCount * size)
  const sides: Side[] = []
  const load = await startLoad(processes)
  const notes: string[] = []
  for (const [name, rows] of [
    ['large', count],
    ['small', smallCount],
  ] as const) {
    const world = await cluster.create(`lists_${name}`)
    const began = performance.now()
    const account = await writeListedRows(world, rows, progress)
    const took = (performance.now() - began) / 1000
    await sql`CREATE EXTENSION pg_stat_statements`.execute(world.db)
    const bytes = (await sizesOf(world.db)).reduce((sum, table) => sum + table.bytes, 0)
    notes.push(
      `${rows.toLocaleString('en')} emails, events and deliveries: ${(bytes / 2 ** 30).toFixed(1)} GiB on disk, written in ${Math.round(took)} s.`,
    )
    const service = await startService(processes, world, { name: `service, ${name}`, roles: 'api' })
    sides.push({ world, account, service })
  }
  const [large, small] = sides
  if (large === undefined || small === undefined) throw new Error('there are no two sides')

  const results: Compared[] = []
  for (const [name, pathOf] of Object.entries(listRequests)) {
    const figures = {
      large: { latencies: [], buffers: [] } as Figures,
      small: { latencies: [], buffers: [] } as Figures,
    }
    for (let round = 0; round <= rounds; round++) {
      for (const [side, into] of [
        [large, figures.large],
        [small, figures.small],
      ] as const) {
        const measured = await measure(load, side, pathOf(side.account), seconds)
        // The first round fills caches.
        if (round === 0) continue
        into.latencies.push(...measured.latencies)
        into.buffers.push(measured.buffers)
      }
    }
    const result = { name, ...figures }
    results.push(result)
    progress(lineOf(result))
  }
  await Promise.all(sides.map(({ service }) => service.stop()))
  for (const { world } of sides) await world.close()

  return { ...summaryOf(results), notes: [...notes, ...usualNotes, ...results.map(lineOf)] }
}

const usualNotes = [
  `Each request is sent ${requestsPerRound} times a round at most, one after the other, to each side in turn. Pages have ${pageSize} rows.`,
  'Buffers are the pages of 8 KiB that PostgreSQL reads for one request, from memory or disk.',
  'A value is common when most rows have it, few when one row of a hundred or fewer has it, and old when only the oldest rows have it.',
  'Each request: p50 and p99 of the large side in ms | of the small side | p50 of large to small | buffers of large and small.',
]

const p50 = ({ latencies }: Figures) => median(latencies)
const p99 = ({ latencies }: Figures) => quantile(latencies, 0.99)

function summaryOf(results: readonly Compared[]): Omit<Outcome, 'notes'> {
  const sides = ['large', 'small'] as const
  const ratioOf = ({ large, small }: Compared) => p50(large) / p50(small)
  const slowest = greatest(results, ({ large }) => p99(large))
  const worst = greatest(results, ratioOf)
  const widest = greatest(results, ({ large }) => median(large.buffers))
  return {
    measurements: sides.flatMap((side) => [
      { side, figure: 'p50 of each request', unit: 'ms', values: results.map((result) => p50(result[side])) },
      { side, figure: 'p99 of each request', unit: 'ms', values: results.map((result) => p99(result[side])) },
      { side, figure: 'buffers of each', unit: '', values: results.map((result) => median(result[side].buffers)) },
    ]),
    targets: [
      { figure: `p99 of the slowest, ${slowest.name}`, unit: 'ms', value: p99(slowest.large), goal: { atMost: 50 } },
      { figure: `p50 of large to small, ${worst.name}`, value: ratioOf(worst), goal: { atMost: 2 } },
      { figure: `most buffers, ${widest.name}`, value: median(widest.large.buffers), goal: { atMost: maxBuffers } },
    ],
    costs: [],
  }
}

function greatest<T>(items: readonly T[], figureOf: (item: T) => number): T {
  const [first] = items.toSorted((a, b) => figureOf(b) - figureOf(a))
  if (first === undefined) throw new Error('nothing was measured')
  return first
}

function lineOf({ name, large, small }: Compared): string {
  const ms = (figures: Figures) => `${formatNumber(p50(figures))} and ${formatNumber(p99(figures))}`
  const buffers = (figures: Figures) => Math.round(median(figures.buffers))
  return [
    `${name}: ${ms(large)}`,
    ms(small),
    `${formatNumber(p50(large) / p50(small))} ×`,
    `${buffers(large)} and ${buffers(small)}`,
  ].join(' | ')
}

/** Sends one request several times. Returns the latencies in milliseconds, and the buffers that one request reads. */
async function measure(load: Load, { world, account, service }: Side, path: string, seconds: number) {
  await sql`SELECT pg_stat_statements_reset()`.execute(world.db)
  const separator = path.includes('?') ? '&' : '?'
  const isList = !path.endsWith('!')
  const target = isList ? `${path}${separator}limit=${pageSize}` : path.slice(0, -1)
  const request = { method: 'GET' as const, path: target, headers: { authorization: `Bearer ${account.key}` } }
  const { latencies } = await load.run(
    { origins: [service.url], requests: [request], seconds, count: requestsPerRound, connections: 1 },
    200,
  )
  const { rows } = await sql<{ buffers: number }>`
    SELECT coalesce(sum(shared_blks_hit + shared_blks_read), 0)::float8 AS buffers FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND query NOT LIKE '%pg_stat_statements%'
  `.execute(world.db)
  return { latencies, buffers: (rows[0]?.buffers ?? 0) / latencies.length }
}
