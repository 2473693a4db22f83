import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Benchmark, BenchmarkContext, Measurement, Outcome, Target } from '../benchmark.ts'
import { startCluster, startLoad, startReceiver, startService, type World } from '../lab.ts'
import { addAudience, addTenants, appendEvents } from '../seed.ts'
import { lateGrowth } from '../statistics.ts'

/** Requests a second: well below what `flow` reaches, so that what is measured is the size, not the speed. */
const rate = 150
const retentionSeconds = 120
/** Tables and indexes that stay below this are not told of. */
const judgedBytes = 2 ** 20
const samplingSeconds = 5
/** Ends the names of what is told of the indexes of a table. */
const ofIndexes = ', indexes'
const connections = 64
/** The greatest of the last third of the time may be this much of the greatest of the third before. */
const level = { atMost: 1.1 }

export const soak: Benchmark = {
  name: 'soak',
  measures: `flow at ${rate} requests/s for ten minutes, with retention set to two minutes`,
  baseline: null,
  rounds: 1,
  seconds: 600,
  run,
}

type Sample = { name: string; bytes: number }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, seconds, progress } = context
  const cluster = await startCluster(processes)
  await using world = await cluster.create('soak')
  const receiver = await startReceiver(processes)
  const events = ['subscriber.added', 'contact.created']
  const [tenant, failing] = await addTenants(world, [
    { urls: [`${receiver.url}/ok/0`], events },
    { urls: [`${receiver.url}/status-500/0`] },
  ])
  if (tenant === undefined || failing === undefined) throw new Error('there is no tenant')
  const audienceId = await addAudience(world, tenant)
  const commitOne = await appendEvents(world, [failing], 1)
  await commitOne()
  const service = await startService(processes, world, {
    env: { RETENTION_DAYS: (retentionSeconds / 86_400).toFixed(8) },
  })
  const load = await startLoad(processes)

  const series = new Map<string, number[]>()
  let isDone = false
  async function sampleAll(): Promise<void> {
    while (!isDone) {
      const memory = { name: 'memory of the service', bytes: await service.memory() }
      const samples = [memory, ...(await tableSizes(world))]
      for (const { name, bytes } of samples) series.set(name, [...(series.get(name) ?? []), bytes])
      const largest = samples.toSorted((a, b) => b.bytes - a.bytes).slice(0, 4)
      progress(largest.map(({ name, bytes }) => `${name} ${(bytes / 2 ** 20).toFixed(1)} MiB`).join(', '))
      await delay(samplingSeconds * 1000, undefined, { ref: false })
    }
  }

  const sampling = sampleAll()
  const request = {
    method: 'POST' as const,
    path: `/v1/audiences/${audienceId}/contacts`,
    headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
    body: '{"email":"reader-{n}@example.com","firstName":"Ada"}',
  }
  const options = { origins: [service.url], requests: [request], seconds, connections, rate }
  const { latencies, seconds: took } = await load.run(options, 201)
  isDone = true
  await sampling

  const large = [...series].filter(([, bytes]) => Math.max(...bytes) >= judgedBytes)
  const measurements: Measurement[] = large.map(([side, bytes]) => ({
    side,
    figure: 'size',
    unit: 'MiB',
    values: bytes.map((value) => value / 2 ** 20),
  }))
  const targets: Target[] = large
    .filter(([name]) => !isKept(name))
    .map(([name, bytes]) => ({
      figure: `${name}: last third to the third before`,
      value: lateGrowth(bytes),
      goal: level,
    }))
  return {
    measurements,
    targets,
    costs: [],
    notes: [
      `${latencies.length} requests in ${Math.round(took)} s, each with two events. Sizes of tables are with TOAST.`,
      'People and contacts are kept, so their tables grow with every request and are not judged. One delivery older than all others waits for its retries the whole time.',
    ],
  }
}

/** Tables of what customers own: no retention applies to them. */
function isKept(name: string): boolean {
  const table = name.replace(ofIndexes, '')
  return ['subscribers', 'contacts', 'accounts', 'audiences', 'webhooks', 'api_keys', 'settings'].includes(table)
}

/** All tables, and the indexes of each. */
async function tableSizes({ db }: World): Promise<Sample[]> {
  const { rows } = await sql<{ name: string; table_bytes: number; index_bytes: number }>`
    SELECT CASE WHEN n.nspname = 'pgboss' AND c.relname ~ '^j[0-9a-f]{20}' THEN 'jobs of deliveries'
        WHEN n.nspname = 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END AS name,
      pg_table_size(c.oid)::float AS table_bytes, pg_indexes_size(c.oid)::float AS index_bytes
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname IN ('public', 'pgboss')
  `.execute(db)
  return rows.flatMap(({ name, table_bytes, index_bytes }) => [
    { name, bytes: table_bytes },
    { name: `${name}${ofIndexes}`, bytes: index_bytes },
  ])
}
