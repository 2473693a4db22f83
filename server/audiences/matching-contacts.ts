import { type RawBuilder, sql } from 'kysely'
import type { Contact } from '../../contract/contacts.ts'
import type { Page } from '../../contract/pagination.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import { hasCode } from '../lib/error-codes.ts'
import { createKeyedSemaphore } from '../lib/semaphore.ts'
import { DomainError } from '../shared/errors.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import { propertiesShower } from '../subscribers/properties.ts'
import { type ContactRow, selectContacts } from './contact-queries.ts'
import { toContact } from './contact-service.ts'

/*
 * The contacts of an audience for whom a condition holds that another room has made.
 */

export type ContactMatch = {
  accountId: string
  /** An audience of the account. */
  audienceId: string
  /** Over the aliases `c` (`contacts`) and `s` (their row of `subscribers`), true or false. */
  condition: RawBuilder<boolean>
}

/** Returns contacts, newest subscribers first. A page may have fewer than `limit` of them: see `selectFitting`. */
export async function listMatching(
  handle: Handle,
  { accountId, audienceId, condition, limit, cursor }: ContactMatch & { limit: number; cursor?: string | undefined },
): Promise<Page<Contact>> {
  const after = decodeCursor('subscriber', cursor)
  const page = { audienceId, matching: condition, after, limit: limit + 1 }
  const { rows, lookedTo } = await selectContacts(handle, accountId, page)
  const show = await propertiesShower(handle, accountId, rows)
  const toItem = (row: ContactRow) => toContact(row, show)
  return pageOfRows(rows, { limit, idOf: (row) => row.subscriber_id, toItem, lookedTo })
}

export type CountLimits = {
  /** Milliseconds that an exact count may take; 0: it is always estimated. */
  exactMs: number
  /** Milliseconds that a statement of an estimate may take. */
  estimateMs: number
  /** Contacts that an estimate is made from. */
  sample: number
  /** Entries of the index that are read to count an audience and to sample it. The size of a larger one is estimated. */
  scanned: number
  /** Counts at once in this process, of all accounts together. */
  atOnce: number
  /** Milliseconds that a count waits for its turn. */
  patienceMs: number
}

export const usualCountLimits: CountLimits = {
  exactMs: 1_500,
  estimateMs: 5_000,
  sample: 10_000,
  scanned: 10_000_000,
  atOnce: 4,
  patienceMs: 10_000,
}

export type MatchCount = { count: number; isEstimate: boolean }

/**
 * Returns a function that counts contacts with a bounded cost: exactly, within `exactMs`, or else as an estimate from a
 * sample that depends on nothing but the contacts. An account has one count at a time in this process. Throws
 * `unavailable` when the turn does not come, and when the estimate takes too long. It needs a handle outside of a
 * transaction, which a time limit would end.
 *
 * @param limits Default: `usualCountLimits`.
 */
export function createMatchCounter(
  limits: Partial<CountLimits> = {},
): (handle: Handle, match: ContactMatch) => Promise<MatchCount> {
  const { exactMs, estimateMs, sample, scanned, atOnce, patienceMs } = { ...usualCountLimits, ...limits }
  const turns = createKeyedSemaphore({ permits: atOnce, holdersPerKey: 1 })

  return async (handle, match) => {
    const leave = await turns.acquire({ key: match.accountId }, AbortSignal.timeout(patienceMs))
    if (leave === null) throw tooMany
    try {
      const exact = exactMs === 0 ? null : await within(handle, exactMs, (trx) => countExactly(trx, match))
      if (exact !== null) return { count: exact, isEstimate: false }
      const estimate = await within(handle, estimateMs, (trx) => estimateCount(trx, match, { sample, scanned }))
      if (estimate === null) throw tooSlow
      return { count: estimate, isEstimate: true }
    } finally {
      leave()
    }
  }
}

/** SQLSTATE. Source: PostgreSQL documentation, appendix A. */
const queryCanceled = '57014'

/** Returns null when a statement of the work takes longer than `limitMs`. */
async function within<T>(handle: Handle, limitMs: number, work: (trx: Trx) => Promise<T>): Promise<T | null> {
  try {
    return await inTransaction(handle, async (trx) => {
      await sql`SELECT set_config('statement_timeout', ${String(limitMs)}, true)`.execute(trx)
      return work(trx)
    })
  } catch (error) {
    if (hasCode(error, queryCanceled)) return null
    throw error
  }
}

/**
 * A left join, which PostgreSQL leaves out where the condition is about contacts alone, and merges in the order of the
 * people where it is not, however wrong it is about how many match.
 */
async function countExactly(trx: Trx, { accountId, audienceId, condition }: ContactMatch): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM contacts c
    LEFT JOIN subscribers s ON s.id = c.subscriber_id AND s.account_id = ${accountId}
    WHERE c.audience_id = ${audienceId} AND c.account_id = ${accountId} AND ${condition}
  `.execute(trx)
  return rows[0]?.count ?? 0
}

type SampleLimits = { sample: number; scanned: number }

/** Applies the share that matches of a sample to the size of the audience. */
async function estimateCount(trx: Trx, match: ContactMatch, { sample, scanned }: SampleLimits): Promise<number> {
  const { accountId, audienceId, condition } = match
  const size = await sizeOf(trx, audienceId, scanned)
  const oneIn = Math.max(1, Math.ceil(Math.min(size, scanned) / sample))
  const { rows } = await sql<{ looked: number; matching: number }>`
    SELECT count(*)::int AS looked, (count(*) FILTER (WHERE ${condition}))::int AS matching
    FROM (
      -- Hashes spread over all contacts, however they were added. The index alone is read.
      SELECT subscriber_id FROM (
        SELECT subscriber_id FROM contacts WHERE audience_id = ${audienceId} LIMIT ${scanned}
      ) AS scanned WHERE (hashtext(subscriber_id) & 2147483647) % ${oneIn} = 0
    ) AS chosen
    -- OFFSET 0 makes the planner look up each row by its key, whatever the statistics say.
    CROSS JOIN LATERAL (
      SELECT * FROM contacts WHERE audience_id = ${audienceId} AND subscriber_id = chosen.subscriber_id OFFSET 0
    ) AS c
    CROSS JOIN LATERAL (
      SELECT * FROM subscribers WHERE account_id = ${accountId} AND id = chosen.subscriber_id OFFSET 0
    ) AS s
    WHERE c.account_id = ${accountId}
  `.execute(trx)
  const [{ looked, matching } = { looked: 0, matching: 0 }] = rows
  return looked === 0 ? 0 : Math.round((size * matching) / looked)
}

/** Returns the number of contacts of an audience: exactly up to `scanned`, beyond as the planner expects. */
async function sizeOf(trx: Trx, audienceId: string, scanned: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM (
      SELECT FROM contacts WHERE audience_id = ${audienceId} LIMIT ${scanned + 1}
    ) AS entries
  `.execute(trx)
  const count = rows[0]?.count ?? 0
  if (count <= scanned) return count
  const { rows: plans } = await sql<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>`
    EXPLAIN (FORMAT JSON) SELECT FROM contacts WHERE audience_id = ${audienceId}
  `.execute(trx)
  return Math.max(count, plans[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0)
}

const tooMany = new DomainError(
  'unavailable',
  'Contacts are counted for each account one count after the other, and a few for all: try again.',
  { retryAfterSeconds: 10 },
)

const tooSlow = new DomainError(
  'unavailable',
  'The database was too busy to count these contacts, even from a sample: try again later.',
  { retryAfterSeconds: 30 },
)
