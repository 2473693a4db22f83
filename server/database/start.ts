import type { Logger } from 'pino'
import { assertDatabase } from './check-database.ts'
import { connect, type Db } from './connection.ts'
import { warnOfMissingIndexes } from './large-indexes.ts'
import { type Migrations, migrateToLatest } from './migrate.ts'
import { type DatabaseLocation, type OpenDatabase, openDatabase } from './open.ts'

export type DatabaseOptions = {
  location: DatabaseLocation
  /** The database, if it is open already. It is closed with the pools. Default: `location` is opened. */
  opened?: OpenDatabase | undefined
  /** PostgreSQL's options of each session. Default: none. */
  sessionOptions?: string
  logger: Logger
}

export type RunningDatabase = OpenDatabase & {
  /**
   * Returns a pool of up to `max` connections, closed with all others. `name` is the application name of its sessions.
   */
  pool(name: string, max: number): Db
}

/** Opens the database for pools of connections. Throws as `openDatabase` does. */
export async function startDatabase(options: DatabaseOptions): Promise<RunningDatabase> {
  const { location, opened, sessionOptions, logger } = options
  await using starting = new AsyncDisposableStack()
  const { connectionString, failed, isNew } = starting.use(opened ?? (await openDatabase(location)))
  const running = starting.move()
  return {
    connectionString,
    failed,
    isNew,
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
