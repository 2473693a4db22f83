import { sql } from 'kysely'
import type { Db } from '../../server/database/connection.ts'
import { migrateToLatest, migrations } from '../../server/database/migrate.ts'

/**
 * Empties a database and gives it the schema of an older version.
 *
 * @param next The name of the first migration that is left out, or its beginning: `0004`.
 */
export async function resetToBefore(db: Db, next: string): Promise<void> {
  await sql`DROP SCHEMA public CASCADE`.execute(db)
  await sql`CREATE SCHEMA public`.execute(db)
  await migrateToLatest(db, Object.fromEntries(Object.entries(migrations).filter(([name]) => name < next)))
}
