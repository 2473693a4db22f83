import { readCommandConfig } from '../config/config.ts'
import { connect, type Db } from '../database/connection.ts'
import { asOperatorError, assertDatabase } from '../database/connection-errors.ts'
import { joinEmbeddedDatabase } from '../database/embedded/start.ts'
import { migrateToLatest } from '../database/migrate.ts'

/** What a command works with. */
export type CliContext = {
  db: Db
  connectionString: string
  /** The names of the plans an account may have. */
  plans: readonly string[]
  /** The migrations that were applied to come here. */
  migrated: readonly string[]
}

/**
 * Runs `work` on the database of the service, migrated as the service would: the one of
 * DATABASE_URL, or the embedded one, which is started for the moment where no service runs.
 *
 * Throws OperatorError when there is no usable database.
 */
export async function withSession<T>(work: (session: CliContext) => Promise<T>): Promise<T> {
  const config = readCommandConfig()
  await using ending = new AsyncDisposableStack()
  const connectionString =
    config.database.kind === 'external'
      ? config.database.url
      : ending.use(await joinEmbeddedDatabase({ dataDir: config.database.dataDir })).connectionString
  // A connection that breaks while it is idle is of no interest here: the next query tells.
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
