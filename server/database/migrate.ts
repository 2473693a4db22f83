import { type Migration, Migrator } from 'kysely/migration'
import { OperatorError } from '../errors.ts'
import type { Db } from './connection.ts'
import * as foundation from './migrations/0001-foundation.ts'

/** All migrations in order. Names are never changed once released. */
const migrations: Record<string, Migration> = {
  '0001-foundation': foundation,
}

function migratorOf(db: Db): Migrator {
  return new Migrator({ db, provider: { getMigrations: async () => migrations } })
}

/**
 * Brings the database to the schema this code needs and answers the names of what it applied.
 * Safe to run from several processes at once: one does it, the others wait.
 */
export async function migrateToLatest(db: Db): Promise<string[]> {
  const { error, results } = await migratorOf(db).migrateToLatest()
  const failed = results?.find((result) => result.status === 'Error')
  if (error !== undefined) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new OperatorError(
      failed
        ? `migration ${failed.migrationName} failed and was undone: ${reason}`
        : `the database could not be migrated: ${reason}`,
    )
  }
  return (results ?? []).map((result) => result.migrationName)
}

/** The names of migrations this code has and the database lacks. */
export async function pendingMigrations(db: Db): Promise<string[]> {
  const all = await migratorOf(db).getMigrations()
  return all.filter((migration) => migration.executedAt === undefined).map((migration) => migration.name)
}
