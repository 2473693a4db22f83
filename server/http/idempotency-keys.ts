import type { Db, Handle } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'

/** Milliseconds to keep a response: 24 hours. */
const lifeMs = 24 * 3_600_000
/** Milliseconds without a response after which the process that ran the request must have died. */
const abandonedMs = 2 * 60_000
/** Rows deleted by one statement, so that it holds its locks for a few milliseconds only. */
const chunkSize = 2_000

/** One use of an idempotency key. */
export type KeyUse = {
  accountId: string
  key: string
  /** Hash of the request, so that the key cannot be used for another one. */
  fingerprint: Buffer
  at: Date
}

export type KeptAnswer = {
  fingerprint: Buffer
  /** Null while the request is running. */
  status: number | null
  /** Sealed. Null when the response has no body. */
  body: Buffer | null
}

/**
 * Claims the key for this request. Returns null on success, otherwise the row of the request that holds the key. Waits
 * for the end of a transaction that is claiming the same key.
 */
export async function claimKey(handle: Handle, use: KeyUse): Promise<KeptAnswer | null> {
  for (;;) {
    if (await insertUse(handle, use)) return null
    const row = await handle
      .selectFrom('idempotency_keys')
      .select(['fingerprint', 'response_status', 'response_body'])
      .where('account_id', '=', use.accountId)
      .where('key', '=', use.key)
      .executeTakeFirst()
    if (row !== undefined) {
      return { fingerprint: row.fingerprint, status: row.response_status, body: row.response_body }
    }
    // The key was released between the two statements: try again.
  }
}

/** Inserts the row, or takes over one that has expired or was abandoned. Returns true when either succeeded. */
async function insertUse(handle: Handle, { accountId, key, fingerprint, at }: KeyUse): Promise<boolean> {
  const claimed = await handle
    .insertInto('idempotency_keys')
    .values({
      account_id: accountId,
      key,
      fingerprint,
      response_status: null,
      response_body: null,
      created_at: at,
    })
    .onConflict((conflict) =>
      conflict
        .columns(['account_id', 'key'])
        .doUpdateSet({ fingerprint, response_status: null, response_body: null, created_at: at })
        .where(({ eb, and, or }) =>
          or([
            eb('idempotency_keys.created_at', '<=', before(at, lifeMs)),
            and([
              eb('idempotency_keys.response_status', 'is', null),
              eb('idempotency_keys.created_at', '<=', before(at, abandonedMs)),
            ]),
          ]),
        ),
    )
    .returning('key')
    .executeTakeFirst()
  return claimed !== undefined
}

/** Keeps the response to the request that claimed the key. Does nothing when another request has taken over the key. */
export async function keepAnswer(
  handle: Handle,
  use: KeyUse,
  answer: { status: number; body: Buffer | null },
): Promise<void> {
  await handle
    .updateTable('idempotency_keys')
    .set({ response_status: answer.status, response_body: answer.body })
    .where('account_id', '=', use.accountId)
    .where('key', '=', use.key)
    .where('created_at', '=', use.at)
    .where('response_status', 'is', null)
    .execute()
}

/** Releases the key after a failed request. Does nothing when another request has taken over the key. */
export async function releaseKey(handle: Handle, use: KeyUse): Promise<void> {
  await handle
    .deleteFrom('idempotency_keys')
    .where('account_id', '=', use.accountId)
    .where('key', '=', use.key)
    .where('created_at', '=', use.at)
    .where('response_status', 'is', null)
    .execute()
}

/** Deletes keys older than 24 hours in small transactions. Returns how many it deleted. */
export async function deleteExpiredIdempotencyKeys({ db, clock }: { db: Db; clock: Clock }): Promise<number> {
  const cutoff = before(clock.now(), lifeMs)
  for (let deleted = 0; ; ) {
    const rows = await db
      .deleteFrom('idempotency_keys')
      .where(({ eb, refTuple, selectFrom }) =>
        eb(
          refTuple('account_id', 'key'),
          'in',
          selectFrom('idempotency_keys')
            .select(['account_id', 'key'])
            .where('created_at', '<=', cutoff)
            .orderBy('created_at')
            .limit(chunkSize)
            .forUpdate()
            .skipLocked()
            .$asTuple('account_id', 'key'),
        ),
      )
      .executeTakeFirst()
    const count = Number(rows.numDeletedRows)
    deleted += count
    if (count < chunkSize) return deleted
  }
}

function before(at: Date, ms: number): Date {
  return new Date(at.getTime() - ms)
}
