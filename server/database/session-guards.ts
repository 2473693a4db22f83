/*
 * What ends a session whose other side is gone, so that its locks and its snapshot do not outlive it for long. Every
 * connection of the service has both.
 */

/** Options of `pg`: the client asks after 30 s of silence whether the server is still there. */
export const socketGuards = { keepAlive: true, keepAliveInitialDelayMillis: 30_000 } as const

/**
 * For the list of a `SELECT`, as the first statement of a session. PostgreSQL ends a transaction whose client has said
 * nothing for 60 s, as that of a frozen process, and the connection to a machine that has been gone for 60 s. A
 * transaction that waits for a lock or runs a long statement is not silent, however long it takes.
 *
 * Not as parameters of the connection, which poolers refuse.
 *
 * Source: PostgreSQL 18 §19.11.1, §19.3.2.
 */
export const sessionGuards = `
  set_config('idle_in_transaction_session_timeout', '60s', false), set_config('tcp_keepalives_idle', '30', false),
  set_config('tcp_keepalives_interval', '10', false), set_config('tcp_keepalives_count', '3', false)`
