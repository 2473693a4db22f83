import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { type Migration, type MigrationResultSet, Migrator } from 'kysely/migration'
import { hasCode, messageOf } from '../lib/error-codes.ts'
import { OperatorError } from '../shared/errors.ts'
import type { Db } from './connection.ts'
import { tellLockHolders } from './lock-holders.ts'
import * as foundation from './migrations/0001-foundation.ts'
import * as email from './migrations/0002-email.ts'
import * as suppressionSources from './migrations/0003-suppression-sources.ts'
import * as modes from './migrations/0004-modes.ts'
import * as eventPositions from './migrations/0005-event-positions.ts'
import * as recovery from './migrations/0006-recovery.ts'
import * as domainKeys from './migrations/0007-domain-keys.ts'
import * as metadata from './migrations/0008-metadata.ts'
import * as repostedAttempts from './migrations/0009-reposted-attempts.ts'
import * as webhookVersions from './migrations/0010-webhook-versions.ts'
import * as deliveryFlows from './migrations/0011-delivery-flows.ts'
import * as outboxLeases from './migrations/0012-outbox-leases.ts'
import * as waiting from './migrations/0013-waiting.ts'

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
  '0010-webhook-versions': webhookVersions,
  '0011-delivery-flows': deliveryFlows,
  '0012-outbox-leases': outboxLeases,
  '0013-waiting': waiting,
}

/** How a migration treats the sessions that hold locks it needs. */
export type LockPatience = {
  /** How often it is begun, in all. */
  tries: number
  /**
   * How long it waits for one lock. Everybody else who needs the table waits behind it for as long. Milliseconds.
   */
  lockTimeoutMs: number
  /** Between two tries, in which others have their turn. */
  pause: () => Promise<unknown>
}

const usualPatience: LockPatience = { tries: 10, lockTimeoutMs: 3_000, pause: () => pause(5_000) }

/** Source: PostgreSQL, appendix A. */
const deadlockDetected = '40P01'
const lockNotAvailable = '55P03'

function migratorOf(db: Db, known: Migrations): Migrator {
  return new Migrator({ db, provider: { getMigrations: async () => known } })
}

/**
 * Brings the database to the schema this code needs and returns the names of what it applied.
 * Safe to run from several processes at once: one does it, the others wait. It is done in one transaction:
 * what fails is undone whole. It is begun again where it is the victim of a deadlock with an older process that is at
 * work, and where another session holds a lock it needs for longer than 3 seconds, as a dump does: 10 times in all, 5
 * seconds after it was undone for a lock. So other sessions wait about 3 seconds at most behind a waiting migration.
 *
 * Throws OperatorError when a migration fails, and when the database is of a newer version: whether this
 * code can work on it, only that version knows.
 *
 * @param known What this code is to know, for tests. Default: all there are.
 * @param patience With locks, for tests. Default: as above.
 */
export async function migrateToLatest(
  db: Db,
  known: Migrations = migrations,
  patience: LockPatience = usualPatience,
): Promise<string[]> {
  const { error, results } = await migratePatiently(db, known, patience)
  if (error !== undefined) {
    const failed = results?.find((result) => result.status === 'Error')?.migrationName
    throw new OperatorError(await explain(db, { known, failed, error, patience }), { cause: error })
  }
  return (results ?? []).map((result) => result.migrationName)
}

async function migratePatiently(db: Db, known: Migrations, patience: LockPatience): Promise<MigrationResultSet> {
  const bounded = withLockTimeout(known, patience.lockTimeoutMs)
  for (let tries = 1; ; tries++) {
    const result = await migratorOf(db, bounded).migrateToLatest()
    if (!hasCode(result.error, deadlockDetected, lockNotAvailable) || tries === patience.tries) return result
    if (hasCode(result.error, lockNotAvailable)) await patience.pause()
  }
}

/** Only of the migrations: it is no matter how long processes that start at once wait for the one that migrates. */
function withLockTimeout(known: Migrations, lockTimeoutMs: number): Migrations {
  const bounded = (migration: Migration): Migration => ({
    async up(db) {
      await sql`SET LOCAL lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(db)
      await migration.up(db)
    },
  })
  return Object.fromEntries(Object.entries(known).map(([name, migration]) => [name, bounded(migration)]))
}

type MigrationFailure = { known: Migrations; failed: string | undefined; error: unknown; patience: LockPatience }

async function explain(db: Db, { known, failed, error, patience }: MigrationFailure): Promise<string> {
  const reason = messageOf(error)
  if (failed !== undefined && hasCode(error, lockNotAvailable)) {
    const { tries, lockTimeoutMs } = patience
    const holders = await tellLockHolders(db, lockTimeoutMs)
    return `migration ${failed} waited ${tries} times for a lock, ${lockTimeoutMs / 1000} s each, and the database is as it was before: ${holders}; wait until it has ended, or end it with SELECT pg_terminate_backend(its number), and start again`
  }
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
