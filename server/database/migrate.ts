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
import * as users from './migrations/0014-users.ts'
import * as auditLog from './migrations/0015-audit-log.ts'
import * as emailSearch from './migrations/0016-email-search.ts'
import * as peopleSearch from './migrations/0017-people-search.ts'
import * as accountEmails from './migrations/0018-account-emails.ts'
import * as signInFailures from './migrations/0019-sign-in-failures.ts'
import * as statistics from './migrations/0020-statistics.ts'
import * as passkeys from './migrations/0021-passkeys.ts'
import * as userIdentities from './migrations/0022-user-identities.ts'
import * as portalSessions from './migrations/0023-portal-sessions.ts'
import * as requestLogs from './migrations/0024-request-logs.ts'
import * as contactProperties from './migrations/0025-contact-properties.ts'
import * as imports from './migrations/0026-imports.ts'
import * as segments from './migrations/0027-segments.ts'
import * as processes from './migrations/0028-processes.ts'
import * as templates from './migrations/0029-templates.ts'
import * as campaigns from './migrations/0030-campaigns.ts'
import * as campaignContent from './migrations/0031-campaign-content.ts'
import * as topics from './migrations/0032-topics.ts'
import * as doubleOptIn from './migrations/0033-double-opt-in.ts'
import * as campaignResults from './migrations/0034-campaign-results.ts'
import * as campaignTimes from './migrations/0035-campaign-times.ts'
import * as mjml from './migrations/0036-mjml.ts'
import * as importZips from './migrations/0038-import-zips.ts'
import * as importTopics from './migrations/0039-import-topics.ts'
import * as campaignAbTests from './migrations/0040-campaign-ab-tests.ts'
import * as variantTemplates from './migrations/0041-variant-templates.ts'
import * as unconfirmedContacts from './migrations/0042-unconfirmed-contacts.ts'
import * as contactSamples from './migrations/0043-contact-samples.ts'
import * as variantFailures from './migrations/0044-variant-failures.ts'
import * as domainBounces from './migrations/0045-domain-bounces.ts'
import * as recipientsByEmail from './migrations/0046-recipients-by-email.ts'
import * as listedSegments from './migrations/0047-listed-segments.ts'
import * as attemptUrls from './migrations/0048-attempt-urls.ts'
import * as emailTags from './migrations/0049-email-tags.ts'
import * as outboxByKind from './migrations/0050-outbox-by-kind.ts'
import * as withheldFor from './migrations/0051-withheld-for.ts'

/** Migrations by name. They are applied in order of name. */
export type Migrations = Readonly<Record<string, Migration>>

/** All migrations in order. Names must not change once released. */
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
  '0014-users': users,
  '0015-audit-log': auditLog,
  '0016-email-search': emailSearch,
  '0017-people-search': peopleSearch,
  '0018-account-emails': accountEmails,
  '0019-sign-in-failures': signInFailures,
  '0020-statistics': statistics,
  '0021-passkeys': passkeys,
  '0022-user-identities': userIdentities,
  '0023-portal-sessions': portalSessions,
  '0024-request-logs': requestLogs,
  '0025-contact-properties': contactProperties,
  '0026-imports': imports,
  '0027-segments': segments,
  '0028-processes': processes,
  '0029-templates': templates,
  '0030-campaigns': campaigns,
  '0031-campaign-content': campaignContent,
  '0032-topics': topics,
  '0033-double-opt-in': doubleOptIn,
  '0034-campaign-results': campaignResults,
  '0035-campaign-times': campaignTimes,
  '0036-mjml': mjml,
  '0038-import-zips': importZips,
  '0039-import-topics': importTopics,
  '0040-campaign-ab-tests': campaignAbTests,
  '0041-variant-templates': variantTemplates,
  '0042-unconfirmed-contacts': unconfirmedContacts,
  '0043-contact-samples': contactSamples,
  '0044-variant-failures': variantFailures,
  '0045-domain-bounces': domainBounces,
  '0046-recipients-by-email': recipientsByEmail,
  '0047-listed-segments': listedSegments,
  '0048-attempt-urls': attemptUrls,
  '0049-email-tags': emailTags,
  '0050-outbox-by-kind': outboxByKind,
  '0051-withheld-for': withheldFor,
}

/** How a migration deals with sessions that hold locks it needs. */
export type LockPatience = {
  /** Maximum number of tries. */
  tries: number
  /**
   * Time limit for waiting for one lock. Other sessions that need the table wait behind it for as long. Milliseconds.
   */
  lockTimeoutMs: number
  /** Waits between two tries, so that other sessions get their turn. */
  pause: () => Promise<unknown>
}

const usualPatience: LockPatience = { tries: 10, lockTimeoutMs: 3_000, pause: () => pause(5_000) }

/** SQLSTATEs. Source: PostgreSQL documentation, appendix A. */
const deadlockDetected = '40P01'
const lockNotAvailable = '55P03'

function migratorOf(db: Db, known: Migrations): Migrator {
  return new Migrator({ db, provider: { getMigrations: async () => known } })
}

/**
 * Migrates the database to the schema that this code needs, and returns the names of the applied migrations. Several
 * processes may call it at once: one migrates, the others wait. All migrations run in one transaction, so a failure
 * undoes everything.
 *
 * It tries up to 10 times in all: after a deadlock with an older process that is running, and 5 seconds after another
 * session, such as a dump, held a lock for longer than 3 seconds. So other sessions wait about 3 seconds at most behind
 * a waiting migration.
 *
 * Throws OperatorError when a migration fails, and when the database has a newer version: only that version knows
 * whether this code can work with it.
 *
 * @param known The migrations of this code, for tests. Default: all.
 * @param patience How to deal with locks, for tests. Default: as described.
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

/**
 * Sets the time limit inside the migrations only: processes that start at the same time may wait for the one that
 * migrates as long as it takes.
 */
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

/** Returns the names of migrations that the database has and `known` lacks. */
async function migrationsBeyond(db: Db, known: Migrations): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`SELECT name FROM kysely_migration ORDER BY name`.execute(db)
  return rows.map(({ name }) => name).filter((name) => !Object.hasOwn(known, name))
}

/** Returns the names of migrations that this code has and the database lacks. */
export async function pendingMigrations(db: Db, known: Migrations = migrations): Promise<string[]> {
  const all = await migratorOf(db, known).getMigrations()
  return all.filter((migration) => migration.executedAt === undefined).map((migration) => migration.name)
}
