import { readCommandConfig } from '../config/config.ts'
import { asOperatorError, assertDatabase } from '../database/check-database.ts'
import { connect, type Db } from '../database/connection.ts'
import { joinEmbeddedDatabase } from '../database/embedded/start.ts'
import { migrateToLatest } from '../database/migrate.ts'

/** The context of a command. */
export type CliContext = {
  db: Db
  connectionString: string
  /** Names of the plans that an account may have. */
  plans: readonly string[]
  /** Migrations that this command has applied. */
  migrated: readonly string[]
}

/**
 * Runs `work` on the migrated database of the service: that of DATABASE_URL, or the embedded one, which is started for
 * this command when the service is not running.
 *
 * Throws OperatorError when the database cannot be used.
 */
export async function withSession<T>(work: (session: CliContext) => Promise<T>): Promise<T> {
  const config = readCommandConfig()
  await using ending = new AsyncDisposableStack()
  const connectionString =
    config.database.kind === 'external'
      ? config.database.url
      : ending.use(await joinEmbeddedDatabase({ dataDir: config.database.dataDir })).connectionString
  // Errors of idle connections are ignored: the next query reports them.
  const db = connect({ connectionString, max: 2, onError: () => undefined })
  ending.defer(() => db.destroy())
  await assertDatabase(db, connectionString)
  const migrated = await migrateToLatest(db)
  try {
    return await work({ db, connectionString, plans: Object.keys(config.rateLimits), migrated })
  } catch (error) {
    throw asOperatorError(error, connectionString)
  }
}
