import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { type Selectable, sql } from 'kysely'
import type { Logger } from 'pino'
import type { Db, Handle } from '../database/connection.ts'
import type { ProcessesTable } from '../database/tables/processes.ts'
import { startLoop } from '../lib/polling-loop.ts'

/*
 * The register of the processes that run. They belong to no account, and nothing rests on it: the operator looks at it.
 */

/** Milliseconds between two times that a process tells that it runs. */
const intervalMs = 15_000
/** Most processes that are listed. */
const mostListed = 100

export type RegisterOptions = {
  db: Db
  logger: Logger
  roles: { readonly api: boolean; readonly worker: boolean }
  /** The version of the service. */
  version: string
}

/** Enters this process into the register and keeps it there. Returns how to take it out, which never rejects. */
export function startRegister({ db, logger, roles, version }: RegisterOptions): { stop(): Promise<void> } {
  const id = randomUUID()
  const names = (['api', 'worker'] as const).filter((role) => roles[role])
  const own = { id, host: hostname(), pid: process.pid, roles: names, version, node: process.version }
  const loop = startLoop({
    intervalMs,
    onError: (err) => logger.warn({ err }, 'telling that this process runs failed; trying again'),
    async run() {
      await sql`
        INSERT INTO processes (id, host, pid, roles, version, node, started_at, seen_at)
        VALUES (${own.id}, ${own.host}, ${own.pid}, ${own.roles}::text[], ${own.version}, ${own.node}, now(), now())
        ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at
      `.execute(db)
      await sql`DELETE FROM processes WHERE seen_at < now() - interval '1 day'`.execute(db)
      return false
    },
  })
  return {
    async stop() {
      await loop.stop()
      await db
        .deleteFrom('processes')
        .where('id', '=', id)
        .execute()
        .catch((err) => logger.warn({ err }, 'taking this process out of the register failed'))
    },
  }
}

/** A process, and the seconds since it last told that it runs. */
export type RegisteredProcess = Selectable<ProcessesTable> & { silent_seconds: number }

/** Returns the processes that were not stopped, of the last day: the newest 100. */
export async function selectProcesses(handle: Handle): Promise<RegisteredProcess[]> {
  return handle
    .selectFrom('processes')
    .selectAll()
    .select(sql<number>`extract(epoch FROM now() - seen_at)::float8`.as('silent_seconds'))
    .orderBy('started_at', 'desc')
    .orderBy('id')
    .limit(mostListed)
    .execute()
}
