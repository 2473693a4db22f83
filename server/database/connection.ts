import { Kysely, sql, type Transaction } from 'kysely'
import pg from 'pg'
import { createDialect } from './driver.ts'
import type { Database } from './schema.ts'
import { sessionGuards, socketGuards } from './session-guards.ts'

/** What the sessions of this service are called in `pg_stat_activity`, for people. */
export const applicationName = 'postern'

export type Db = Kysely<Database>
export type Trx = Transaction<Database>
/** What a query needs: the database, or a transaction of it. */
export type Handle = Db | Trx

export type ConnectionOptions = {
  connectionString: string
  /** What the sessions are called in `pg_stat_activity`. Default: `postern`. */
  applicationName?: string
  /** Connections at most. */
  max: number
  /** Called when an idle connection breaks; the pool replaces it by itself. */
  onError: (error: Error) => void
  /** Statements for every new session, such as the test clock's setting. Default: none. */
  sessionOptions?: string
}

/**
 * Statements are planned for tables that will grow: plans are kept, those of foreign keys too, and one made
 * while it was cheapest to read a table through would read all of a flood for each row of it. What is costed
 * as if that were forbidden must not look as if it were worth compiling. Nor is anything here worth all cores
 * at once: who counts in the background holds up nobody. Each statement of a transaction sees what was committed before
 * it, whatever the server's default is: that is what waiting for a lock and then looking rests on.
 */
const sessionSettings = `
  SELECT set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false),
    set_config('max_parallel_workers_per_gather', '0', false),
    set_config('default_transaction_isolation', 'read committed', false), ${sessionGuards}
`

/** A pool and Kysely on it. `destroy()` on the latter closes both. */
export function connect(options: ConnectionOptions): Db {
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.max,
    application_name: options.applicationName ?? applicationName,
    connectionTimeoutMillis: 5_000,
    ...socketGuards,
    // What is sent at once is not sent one by one.
    pipeline: true,
    ...(options.sessionOptions === undefined ? {} : { options: options.sessionOptions }),
  })
  pool.on('error', options.onError)
  pool.on('connect', (client) => {
    // The pool listens to idle ones only. One that breaks in use fails the statement it runs, which tells
    // of it; but an error nobody listens to would end the process.
    client.on('error', () => undefined)
    client.query(sessionSettings).catch(() => undefined)
  })
  return new Kysely<Database>({ dialect: createDialect(pool) })
}

const commitHooks = new WeakMap<Trx, (() => void)[]>()

/**
 * Runs `work` in a transaction: the one `handle` already is, or a new one. What `work` does is
 * committed whole or not at all.
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
 * Has `hook` called once, after `trx` has committed and before `inTransaction` resolves; never if it rolls back. For
 * what concerns this process only: one that dies between the two calls no hook.
 */
export function afterCommit(trx: Trx, hook: () => void): void {
  const hooks = commitHooks.get(trx)
  if (hooks !== undefined && !hooks.includes(hook)) hooks.push(hook)
}

/** Resolves to true once the database has answered a statement; rejects when it cannot. */
export async function isAnswering(db: Db): Promise<boolean> {
  await sql`SELECT 1`.execute(db)
  return true
}
