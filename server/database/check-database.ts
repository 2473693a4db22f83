import { sql } from 'kysely'
import { codeOf, messageOf } from '../lib/error-codes.ts'
import { OperatorError } from '../shared/errors.ts'
import type { Db } from './connection.ts'

/** PostgreSQL 14, in the format of `server_version_num`. */
const oldestVersion = 140_000

/**
 * Checks that the database of `databaseUrl` responds and is new enough. Throws OperatorError with advice when it cannot
 * be reached, rejects the user or password, does not exist or is too old.
 */
export async function assertDatabase(db: Db, databaseUrl: string): Promise<void> {
  try {
    const { rows } = await sql<{ server_version_num: string; server_version: string }>`
      SELECT current_setting('server_version_num') AS server_version_num, current_setting('server_version') AS server_version
    `.execute(db)
    const [found] = rows
    if (found !== undefined && Number(found.server_version_num) < oldestVersion) {
      throw new OperatorError(
        `the database at ${placeOf(new URL(databaseUrl))} is PostgreSQL ${found.server_version}, and 14 is the oldest that works; upgrade it, or set DATABASE_URL to another one`,
      )
    }
  } catch (error) {
    throw asOperatorError(error, databaseUrl)
  }
}

/**
 * Returns an OperatorError with advice for a failure to connect to `databaseUrl`; the message never contains the
 * password. Returns any other error unchanged.
 */
export function asOperatorError(error: unknown, databaseUrl: string): unknown {
  const advice = adviceOn(error, databaseUrl)
  return advice === null ? error : new OperatorError(advice, { cause: error })
}

/** Returns advice for the operator, or null. Source: PostgreSQL documentation, appendix A, "PostgreSQL Error Codes". */
function adviceOn(error: unknown, databaseUrl: string): string | null {
  const url = new URL(databaseUrl)
  const place = placeOf(url)
  const user = decodeURIComponent(url.username) || 'the default user'
  const database = decodeURIComponent(url.pathname.slice(1)) || user
  const reason = messageOf(error)

  switch (codeOf(error)) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the database host ${url.hostname} was not found; check the host in DATABASE_URL`
    case 'ECONNREFUSED':
    case 'ECONNRESET':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'ETIMEDOUT':
    case 'ENOENT':
      return `the database at ${place} cannot be reached (${codeOf(error)}); check that PostgreSQL runs there, and the host and port in DATABASE_URL`
    case '28P01':
      return `the database at ${place} refuses the password of "${user}"; check the user and password in DATABASE_URL`
    case '28000':
      return `the database at ${place} refuses the user "${user}" (${reason}); check DATABASE_URL and the server's pg_hba.conf`
    case '3D000':
      return `there is no database "${database}" at ${place}; create it (createdb ${database}), or name another one in DATABASE_URL`
    case '42501':
      return `the user "${user}" lacks a right in the database at ${place} (${reason}); make it the owner of the database`
    case '53300':
      return `the database at ${place} has no connection left; raise its max_connections, or lower DATABASE_POOL_SIZE`
    case '57P03':
      return `the database at ${place} is starting up or shutting down; try again in a moment`
    default:
      return adviceOnMessage(reason, place)
  }
}

/** Returns advice for failures that the driver reports only as a message. */
function adviceOnMessage(reason: string, place: string): string | null {
  if (/password must be a( non-empty)? string/.test(reason)) {
    return `the database at ${place} asks for a password; put it in DATABASE_URL`
  }
  if (/SSL|TLS|certificate/i.test(reason)) {
    return `no secure connection to the database at ${place} (${reason}); check sslmode in DATABASE_URL and the server's certificate`
  }
  if (/timeout|terminated/i.test(reason)) {
    return `the database at ${place} does not answer; check that PostgreSQL runs there, and the host and port in DATABASE_URL`
  }
  return null
}

/** Returns the host and port of a database, without user and password. */
function placeOf({ hostname, port, searchParams }: URL): string {
  const host = searchParams.get('host') ?? hostname
  return host.startsWith('/') ? host : `${host || 'localhost'}:${searchParams.get('port') ?? (port || '5432')}`
}
