import { sql } from 'kysely'
import { type Migration, type MigrationResultSet, Migrator } from 'kysely/migration'
import { hasCode, messageOf } from '../errno.ts'
import { OperatorError } from '../errors.ts'
import type { Db } from './connection.ts'
import * as foundation from './migrations/0001-foundation.ts'
import * as email from './migrations/0002-email.ts'
import * as suppressionSources from './migrations/0003-suppression-sources.ts'
import * as modes from './migrations/0004-modes.ts'
import * as eventPositions from './migrations/0005-event-positions.ts'
import * as recovery from './migrations/0006-recovery.ts'
import * as domainKeys from './migrations/0007-domain-keys.ts'
import * as metadata from './migrations/0008-metadata.ts'
import * as repostedAttempts from './migrations/0009-reposted-attempts.ts'

/** By their names, whose order is that in which they are applied. */
export type Migrations = Readonly<Record<string, Migration>>

/** All migrations in order. Names are never changed once released. */
export const migrations: Migrations = {
  '0001-foundation': foundation,
  '0002-email': email,
  '0003-suppression-sources': suppressionSources,
  '0004-modes': modes,
  '0005-event-positions': eventPositions,
  '0006-recovery': recovery,
  '0007-domain-keys': domainKeys,
  '0008-metadata': metadata,
  '0009-reposted-attempts': repostedAttempts,
}

/** How often a migration is begun that is undone for a deadlock with a process at work. */
const maxTries = 10

function migratorOf(db: Db, known: Migrations): Migrator {
  return new Migrator({ db, provider: { getMigrations: async () => known } })
}

/**
 * Brings the database to the schema this code needs and returns the names of what it applied.
 * Safe to run from several processes at once: one does it, the others wait. It is done in one transaction:
 * what fails is undone whole. Where it is the victim of a deadlock with an older process that is at work,
 * it is begun again.
 *
 * Throws OperatorError when a migration fails, and when the database is of a newer version: whether this
 * code can work on it, only that version knows.
 *
 * @param known What this code is to know, for tests. Default: all there are.
 */
export async function migrateToLatest(db: Db, known: Migrations = migrations): Promise<string[]> {
  const { error, results } = await withoutDeadlock(() => migratorOf(db, known).migrateToLatest())
  if (error !== undefined) {
    const failed = results?.find((result) => result.status === 'Error')
    throw new OperatorError(await explain(db, { known, failed: failed?.migrationName, reason: messageOf(error) }), {
      cause: error,
    })
  }
  return (results ?? []).map((result) => result.migrationName)
}

/** Source: PostgreSQL, appendix A: 40P01 is `deadlock_detected`. */
async function withoutDeadlock(migrate: () => Promise<MigrationResultSet>): Promise<MigrationResultSet> {
  for (let tries = 1; ; tries++) {
    const result = await migrate()
    if (!hasCode(result.error, '40P01') || tries === maxTries) return result
  }
}

type Failure = { known: Migrations; failed: string | undefined; reason: string }

async function explain(db: Db, { known, failed, reason }: Failure): Promise<string> {
  if (failed !== undefined) {
    return `migration ${failed} failed, and the database is as it was before: ${reason}; mend what it says and start again, or start the version you had`
  }
  const [unknown] = await migrationsBeyond(db, known).catch(() => [])
  if (unknown !== undefined) {
    return `the database is of a newer version, whose migration ${unknown} is not known here; start that version, or restore the backup made before it`
  }
  return `the database could not be migrated: ${reason}`
}

/** The names of migrations the database has and `known` lacks. */
async function migrationsBeyond(db: Db, known: Migrations): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM kysely_migration ORDER BY name`.execute(db)
  return rows.map(({ name }) => name).filter((name) => !Object.hasOwn(known, name))
}

/** The names of migrations this code has and the database lacks. */
export async function pendingMigrations(db: Db, known: Migrations = migrations): Promise<string[]> {
  const all = await migratorOf(db, known).getMigrations()
  return all.filter((migration) => migration.executedAt === undefined).map((migration) => migration.name)
}
