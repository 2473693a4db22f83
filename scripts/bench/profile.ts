import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import type { BenchmarkContext } from './benchmark.ts'
import { parseCpuProfile, summarise } from './cpu-profile.ts'
import type { ClusterOptions, Service, World } from './lab.ts'

const shownFunctions = 25
const shownPackages = 15
const shownStatements = 20

/**
 * Profiles the service with `--profile`; otherwise does nothing. The log of PostgreSQL then has the plans of statements
 * that took 50 ms or more.
 */
export type Profiling = {
  /** Options for `startCluster`. */
  cluster: ClusterOptions
  /** Options of Node for the profiled service. */
  nodeArgs: readonly string[]
  /** Resets the statistics of statements. */
  begin(world: World): Promise<void>
  /** Stops the service and returns the lines of the report. */
  end(world: World, service: Service, done: { what: string; count: number }): Promise<string[]>
}

/** @param name Name of the file without `.cpuprofile`. */
export function profiling({ profileDir }: Pick<BenchmarkContext, 'profileDir'>, name: string): Profiling {
  if (profileDir === null) {
    return { cluster: {}, nodeArgs: [], begin: async () => undefined, end: async () => [] }
  }
  const file = `${name}.cpuprofile`
  return {
    cluster: {
      settings: {
        shared_preload_libraries: 'pg_stat_statements,auto_explain',
        // Logs the plans of slow statements with the actual row counts.
        'auto_explain.log_min_duration': '50ms',
        'auto_explain.log_analyze': 'on',
        'auto_explain.log_timing': 'off',
        'auto_explain.log_buffers': 'on',
        'auto_explain.log_parameter_max_length': '0',
      },
      logFile: join(profileDir, `${name}-postgres.log`),
    },
    nodeArgs: ['--cpu-prof', '--cpu-prof-dir', profileDir, '--cpu-prof-name', file],
    async begin({ db }) {
      await sql`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`.execute(db)
      await sql`SELECT pg_stat_statements_reset()`.execute(db)
    },
    async end(world, service, done) {
      const statements = await statementsOf(world, done)
      await service.stop()
      return [...statements, ...(await functionsOf(join(profileDir, file)))]
    },
  }
}

type StatementRow = { query: string; calls: number; ms: number; rows: number; blocks: number; wal: number }

async function statementsOf({ db }: World, { what, count }: { what: string; count: number }): Promise<string[]> {
  const { rows } = await sql<StatementRow>`
    SELECT regexp_replace(left(query, 160), '\\s+', ' ', 'g') AS query, calls::float, total_exec_time AS ms,
      rows::float, (shared_blks_hit + shared_blks_read)::float AS blocks, wal_bytes::float AS wal
    FROM pg_stat_statements
    WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
    ORDER BY total_exec_time DESC
  `.execute(db)
  const calls = rows.reduce((sum, row) => sum + row.calls, 0)
  const ms = rows.reduce((sum, row) => sum + row.ms, 0)
  return [
    `Statements: ${calls} for ${count} of "${what}" (${(calls / count).toFixed(4)} each), ${(ms / 1000).toFixed(2)} s in PostgreSQL.`,
    'ms in all | calls | ms a call | rows | buffers | WAL bytes | statement',
    ...rows
      .slice(0, shownStatements)
      .map((row) =>
        [
          row.ms.toFixed(0),
          row.calls,
          (row.ms / row.calls).toFixed(3),
          row.rows,
          row.blocks,
          row.wal,
          row.query.slice(0, 110),
        ].join(' | '),
      ),
  ]
}

async function functionsOf(path: string): Promise<string[]> {
  const { busySeconds, idleSeconds, byPackage, byFunction } = summarise(parseCpuProfile(await readFile(path, 'utf8')))
  const line = ({ name, seconds }: { name: string; seconds: number }) =>
    `${((seconds / busySeconds) * 100).toFixed(1).padStart(5)} % ${seconds.toFixed(2).padStart(6)} s  ${name}`
  return [
    `CPU profile ${path}: ${busySeconds.toFixed(1)} s busy, ${idleSeconds.toFixed(1)} s idle. Self time by package:`,
    ...byPackage.slice(0, shownPackages).map(line),
    'Self time by function:',
    ...byFunction.slice(0, shownFunctions).map(line),
  ]
}
