import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import { startService, type World } from '../lab.ts'
import type { Running } from '../processes.ts'
import { type Lab, type LoadSize, publish, type Way } from './event-measure.ts'

/*
 * Counts the statements, commits and round trips of an event. Not during timed measurements, because the connections of
 * this service go through a proxy.
 */

/** Settings of PostgreSQL that allow counting statements. Counting starts with `countWork`. */
export const countingSettings = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track': 'none',
} as const

/** Milliseconds after which all commits are counted: an idle PostgreSQL process reports its own after 10 s. */
const toldMs = 11_000

export type Work = { statements: number; commits: number; roundTrips: number }

export type WorkOptions = {
  requests: Way['requests']
  warmUp: LoadSize
  loads: readonly LoadSize[]
  progress: (text: string) => void
}

/** Returns the work of an idle second, and the work per event of each load without the idle work. */
export async function countWork(
  lab: Lab,
  { requests, warmUp, loads, progress }: WorkOptions,
): Promise<{ idle: Work; loads: Work[] }> {
  const { processes, world, receiver } = lab
  await sql`CREATE EXTENSION IF NOT EXISTS pg_stat_statements`.execute(world.db)
  // Applies to connections that are opened from now on.
  await sql`ALTER DATABASE ${sql.id(world.name)} SET pg_stat_statements.track = 'top'`.execute(world.db)
  const proxy = await processes.start({
    name: 'proxy',
    file: import.meta.resolve('../programs/round-trips.ts'),
    args: [world.connectionString],
  })
  const connectionString = await proxy.ask('connectionString', null, z.string())
  const env = { DATABASE_URL: connectionString }
  await using service = await startService(processes, world, { name: 'service, counted', env })
  const way: Way = { name: 'service, counted', url: service.url, memory: service.memory, requests, table: 'events' }

  /** Counts the work from the start of `work` until PostgreSQL has reported all of it. */
  async function count(work: () => Promise<number>): Promise<{ events: number; seconds: number; work: Work }> {
    await receiver.reset('nothing')
    const before = await readWork(world, proxy)
    const began = performance.now()
    const events = await work()
    await delay(toldMs)
    const after = await readWork(world, proxy)
    return { events, seconds: (performance.now() - began) / 1_000, work: subtract(after, before, 1) }
  }

  await count(() => publish(lab, way, warmUp))
  const nothing = await count(async () => 0)
  const idle = divide(nothing.work, nothing.seconds)
  const counted: Work[] = []
  for (const size of loads) {
    const { events, seconds, work } = await count(() => publish(lab, way, size))
    const each = divide(subtract(work, idle, seconds), events)
    counted.push(each)
    progress(`${each.statements.toFixed(2)} statements, ${each.commits.toFixed(2)} commits an event`)
  }
  return { idle, loads: counted }
}

async function readWork({ db }: World, proxy: Running): Promise<Work> {
  const { rows } = await sql<{ statements: number; commits: number }>`
    SELECT (SELECT sum(calls) FROM pg_stat_statements WHERE dbid = d.datid)::float AS statements,
      d.xact_commit::float AS commits
    FROM pg_stat_database d WHERE d.datname = current_database()
  `.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('PostgreSQL has counted nothing')
  return { ...row, roundTrips: await proxy.ask('count', null, z.number()) }
}

function subtract(one: Work, other: Work, times: number): Work {
  return {
    statements: one.statements - other.statements * times,
    commits: one.commits - other.commits * times,
    roundTrips: one.roundTrips - other.roundTrips * times,
  }
}

function divide(work: Work, by: number): Work {
  return { statements: work.statements / by, commits: work.commits / by, roundTrips: work.roundTrips / by }
}
