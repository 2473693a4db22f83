/*
 * Settings that end a session whose peer is gone, so that its locks and its snapshot do not outlive it for long. Every
 * connection of the service has both.
 */

/** Options of `pg`: TCP keepalive of the client, after 30 s of silence. */
export const socketGuards = { keepAlive: true, keepAliveInitialDelayMillis: 30_000 } as const

/**
 * Expressions for the `SELECT` that is the first statement of a session. PostgreSQL ends a transaction whose client has
 * sent nothing for 60 s, for example because its process is frozen, and the connection to a machine that has been gone
 * for 60 s. A transaction that waits for a lock or runs a long statement is not affected.
 *
 * They are no connection parameters, since poolers refuse those.
 *
 * Source: PostgreSQL 18 §19.11.1, §19.3.2.
 */
export const sessionGuards = `
  set_config('idle_in_transaction_session_timeout', '60s', false), set_config('tcp_keepalives_idle', '30', false),
  set_config('tcp_keepalives_interval', '10', false), set_config('tcp_keepalives_count', '3', false)`
