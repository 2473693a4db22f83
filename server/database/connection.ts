import { Kysely, sql, type Transaction } from 'kysely'
import pg from 'pg'
import { createDialect } from './driver.ts'
import type { Database } from './schema.ts'
import { sessionGuards, socketGuards } from './session-guards.ts'

/** The application name of the sessions in `pg_stat_activity`. */
export const applicationName = 'postern'

export type Db = Kysely<Database>
export type Trx = Transaction<Database>
/** Runs queries: the database, or a transaction of it. */
export type Handle = Db | Trx

export type ConnectionOptions = {
  connectionString: string
  /** The application name of the sessions in `pg_stat_activity`. Default: `postern`. */
  applicationName?: string
  /** Maximum number of connections. */
  max: number
  /** Called when an idle connection breaks. The pool replaces it by itself. */
  onError: (error: Error) => void
  /** Options of every new session, such as the setting of the test clock. Default: none. */
  sessionOptions?: string
}

/**
 * The settings of every session.
 *
 * enable_seqscan is off: tables grow, and plans are kept, also those of foreign keys. A plan made while a table was
 * small would read the whole table for each row later.
 *
 * jit is off: with sequential scans off, their estimated costs are so high that the planner would compile the plan.
 *
 * Parallel workers are off: background counts must not take all cores.
 *
 * The isolation level is read committed, whatever the server's default is: each statement sees what was committed
 * before it. Code that waits for a lock and then reads relies on that.
 */
const sessionSettings = `
  SELECT set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false),
    set_config('max_parallel_workers_per_gather', '0', false),
    set_config('default_transaction_isolation', 'read committed', false), ${sessionGuards}
`

/** Creates a pool and a Kysely on it. `destroy()` of the Kysely closes both. */
export function connect(options: ConnectionOptions): Db {
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.max,
    application_name: options.applicationName ?? applicationName,
    connectionTimeoutMillis: 5_000,
    ...socketGuards,
    // Statements issued together are sent without waiting for the response to each.
    pipeline: true,
    ...(options.sessionOptions === undefined ? {} : { options: options.sessionOptions }),
  })
  pool.on('error', options.onError)
  pool.on('connect', (client) => {
    // The pool listens for errors of idle connections only. If a connection breaks in use, its statement fails and
    // reports that; without a listener the error event would end the process.
    client.on('error', () => undefined)
    client.query(sessionSettings).catch(() => undefined)
  })
  return new Kysely<Database>({ dialect: createDialect(pool) })
}

const commitHooks = new WeakMap<Trx, (() => void)[]>()

/**
 * Runs `work` in a transaction: the one that `handle` already is, or a new one. It is committed as a whole or not at
 * all.
 */
export async function inTransaction<T>(handle: Handle, work: (trx: Trx) => Promise<T>): Promise<T> {
  if (handle.isTransaction) return work(handle as Trx)
  const hooks: (() => void)[] = []
  const result = await (handle as Db).transaction().execute((trx) => {
    commitHooks.set(trx, hooks)
    return work(trx)
  })
  for (const hook of hooks) hook()
  return result
}

/**
 * Calls `hook` once, after `trx` has committed and before `inTransaction` resolves; never if it rolls back. Only for
 * effects within this process: if the process dies after the commit, the hook is not called.
 */
export function afterCommit(trx: Trx, hook: () => void): void {
  const hooks = commitHooks.get(trx)
  if (hooks !== undefined && !hooks.includes(hook)) hooks.push(hook)
}

/** Resolves to true once the database has answered a statement; rejects if it cannot. */
export async function isAnswering(db: Db): Promise<boolean> {
  await sql`SELECT 1`.execute(db)
  return true
}
