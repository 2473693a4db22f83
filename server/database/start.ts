import type { Logger } from 'pino'
import { assertDatabase } from './check-database.ts'
import { connect, type Db } from './connection.ts'
import { startEmbeddedDatabase } from './embedded/start.ts'
import { warnOfMissingIndexes } from './large-indexes.ts'
import { type Migrations, migrateToLatest } from './migrate.ts'

export type DatabaseOptions = {
  /** The operator's PostgreSQL, or the embedded one with its directory. */
  location:
    | { readonly kind: 'external'; readonly url: string }
    | { readonly kind: 'embedded'; readonly dataDir: string }
  /** PostgreSQL's options of each session. Default: none. */
  sessionOptions?: string
  logger: Logger
}

export type RunningDatabase = AsyncDisposable & {
  connectionString: string
  /** Rejects with an OperatorError when the embedded database has ended by itself. */
  failed: Promise<never>
  /**
   * Returns a pool of up to `max` connections, closed with all others. `name` is the application name of its sessions.
   */
  pool(name: string, max: number): Db
}

/**
 * Starts the embedded database, or connects to the operator's. Throws OperatorError for problems that the operator can
 * fix.
 */
export async function startDatabase({ location, sessionOptions, logger }: DatabaseOptions): Promise<RunningDatabase> {
  await using starting = new AsyncDisposableStack()
  const failure = Promise.withResolvers<never>()
  // Prevents an unhandled rejection if nothing waits for it.
  failure.promise.catch(() => undefined)
  const connectionString = await open()
  const running = starting.move()
  return {
    connectionString,
    failed: failure.promise,
    pool(applicationName, max) {
      const made = connect({
        connectionString,
        ...(sessionOptions && { sessionOptions }),
        applicationName,
        max,
        onError: (err) => logger.error({ err }, 'a database connection failed'),
      })
      running.defer(() => made.destroy())
      return made
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }

  async function open(): Promise<string> {
    if (location.kind === 'external') return location.url
    const embedded = await startEmbeddedDatabase({ dataDir: location.dataDir, onUnexpectedExit: failure.reject })
    starting.use(embedded)
    return embedded.connectionString
  }
}

/** Checks the operator's PostgreSQL and migrates the database. Throws OperatorError if it cannot. */
export async function prepareDatabase(
  db: Db,
  {
    location,
    connectionString,
    migrations,
    logger,
  }: Pick<DatabaseOptions, 'location' | 'logger'> & {
    connectionString: string
    /** Default: all. */
    migrations?: Migrations | undefined
  },
): Promise<void> {
  if (location.kind === 'external') await assertDatabase(db, connectionString)
  const migrated = await migrateToLatest(db, migrations)
  if (migrated.length > 0) logger.info({ migrated }, 'migrated the database')
  await warnOfMissingIndexes(db, logger)
}
