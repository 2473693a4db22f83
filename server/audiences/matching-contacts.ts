import { type RawBuilder, sql } from 'kysely'
import type { Contact } from '../../contract/contacts.ts'
import type { Page } from '../../contract/pagination.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import { isTimedOut, limitStatements } from '../database/statement-timeout.ts'
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
  /**
   * Over the aliases `c` (`subscriber_id`, `status` and `created_at` of `contacts`) and `s` (their row of `subscribers`),
   * true or false.
   */
  condition: RawBuilder<boolean>
  /** The condition reads no column but `c.status`: indexes have the answer then. */
  isOfStatusAlone: boolean
}

/** Returns contacts, newest subscribers first. A page may have fewer than `limit` of them: see `selectFitting`. */
export async function listMatching(
  handle: Handle,
  {
    accountId,
    audienceId,
    condition,
    limit,
    cursor,
  }: Omit<ContactMatch, 'isOfStatusAlone'> & { limit: number; cursor?: string | undefined },
): Promise<Page<Contact>> {
  const after = decodeCursor('subscriber', cursor)
  const page = { audienceId, matching: condition, after, limit: limit + 1 }
  const { rows, lookedTo } = await selectContacts(handle, accountId, page)
  const show = await propertiesShower(handle, accountId, rows)
  const toItem = (row: ContactRow) => toContact(row, show)
  return pageOfRows(rows, { limit, idOf: (row) => row.subscriber_id, toItem, lookedTo })
}

export type CountLimits = {
  /** Contacts of an audience up to which it is counted exactly. */
  exactUpTo: number
  /** Milliseconds that an exact count may take. */
  exactMs: number
  /** Milliseconds that a statement of an estimate may take. */
  estimateMs: number
  /** Contacts that an estimate is made from, at most. */
  sample: number
  /** Entries of the index of samples that are counted at most. Beyond, the size of an audience is what the planner expects. */
  scanned: number
  /** Counts at once in this process, of all accounts together. */
  atOnce: number
  /** Milliseconds that a count waits for its turn. */
  patienceMs: number
}

export const usualCountLimits: CountLimits = {
  exactUpTo: 200_000,
  exactMs: 1_500,
  estimateMs: 5_000,
  sample: 10_000,
  scanned: 1_000_000,
  atOnce: 4,
  patienceMs: 10_000,
}

export type MatchCount = { count: number; isEstimate: boolean }

/**
 * Returns a function that counts contacts with a bounded cost. The count is exact for an audience of at most `exactUpTo`
 * contacts, and for a condition on the status alone, unless it takes longer than `exactMs`. Otherwise it is an estimate
 * from a sample that depends on nothing but the contacts. Of an audience of at most `sample` contacts it is always exact. An account has one count at a time in this process. Throws
 * `unavailable` when the turn does not come, and when the estimate takes too long. It needs a handle outside of a
 * transaction, which a time limit would end.
 *
 * @param limits Default: `usualCountLimits`.
 */
export function createMatchCounter(
  limits: Partial<CountLimits> = {},
): (handle: Handle, match: ContactMatch) => Promise<MatchCount> {
  const { exactUpTo, exactMs, estimateMs, sample, scanned, atOnce, patienceMs } = { ...usualCountLimits, ...limits }
  const turns = createKeyedSemaphore({ permits: atOnce, holdersPerKey: 1 })

  async function counted(handle: Handle, match: ContactMatch): Promise<MatchCount> {
    const size = await within(handle, estimateMs, (trx) => expectedSize(trx, match.audienceId, scanned))
    if (size === null) throw tooSlow
    if (match.isOfStatusAlone || size <= exactUpTo) {
      // A sample would have too few of a small audience.
      const isSmall = size <= sample
      const count = await within(handle, isSmall ? estimateMs : exactMs, (trx) => countExactly(trx, match))
      if (count !== null) return { count, isEstimate: false }
      if (isSmall) throw tooSlow
    }
    const share = await within(handle, estimateMs, (trx) => sampledShare(trx, match, sample))
    if (share === null) throw tooSlow
    return { count: Math.round(size * share), isEstimate: true }
  }

  return async (handle, match) => {
    const leave = await turns.acquire({ key: match.accountId }, AbortSignal.timeout(patienceMs))
    if (leave === null) throw tooMany
    try {
      return await counted(handle, match)
    } finally {
      leave()
    }
  }
}

/** Returns null when a statement of the work takes longer than `limitMs`. */
async function within<T>(handle: Handle, limitMs: number, work: (trx: Trx) => Promise<T>): Promise<T | null> {
  try {
    return await inTransaction(handle, async (trx) => {
      await limitStatements(trx, limitMs)
      return work(trx)
    })
  } catch (error) {
    if (isTimedOut(error)) return null
    throw error
  }
}

/** A left join, which PostgreSQL merges in the order of the people, however wrong it is about how many match. */
async function countExactly(trx: Trx, match: ContactMatch): Promise<number> {
  if (match.isOfStatusAlone) return countByStatus(trx, match)
  const { accountId, audienceId, condition } = match
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM contacts c
    LEFT JOIN subscribers s ON s.id = c.subscriber_id AND s.account_id = ${accountId}
    WHERE c.audience_id = ${audienceId} AND c.account_id = ${accountId} AND ${condition}
  `.execute(trx)
  return rows[0]?.count ?? 0
}

/** Counts from indexes alone: those who are not active by their status, and all. The condition is asked for each status. */
async function countByStatus(trx: Trx, { audienceId, condition }: ContactMatch): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    WITH inactive AS MATERIALIZED (
      SELECT status, count(*) AS count FROM contacts WHERE audience_id = ${audienceId} AND status <> 'active'
      GROUP BY status
    ), by_status AS (
      SELECT status, count FROM inactive
      UNION ALL
      SELECT 'active', (SELECT count(*) FROM contacts WHERE audience_id = ${audienceId})
        - (SELECT coalesce(sum(count), 0) FROM inactive)
    )
    SELECT coalesce(sum(c.count), 0)::int AS count FROM by_status c WHERE ${condition}
  `.execute(trx)
  return rows[0]?.count ?? 0
}

/** The index `contacts_sample` has one of so many contacts. */
const sampledOneIn = 8
/** As the index has it: of 32 characters that an id may end in, 4. */
const isSampled = sql`right(subscriber_id, 1) < '4'`

/**
 * Returns the share of an audience that matches: that of the first contacts of the index of samples. They are in the
 * order of what is random in an id, so it does not matter how they were added.
 */
async function sampledShare(
  trx: Trx,
  { accountId, audienceId, condition }: ContactMatch,
  sample: number,
): Promise<number> {
  const { rows } = await sql<{ looked: number; matching: number }>`
    SELECT count(*)::int AS looked, (count(*) FILTER (WHERE ${condition}))::int AS matching
    FROM (
      SELECT subscriber_id, status, created_at FROM contacts WHERE audience_id = ${audienceId} AND ${isSampled}
      ORDER BY reverse(subscriber_id) LIMIT ${sample}
    ) AS c
    -- OFFSET 0 makes the planner look up each row by its key, whatever the statistics say.
    CROSS JOIN LATERAL (
      SELECT * FROM subscribers WHERE account_id = ${accountId} AND id = c.subscriber_id OFFSET 0
    ) AS s
  `.execute(trx)
  const [{ looked, matching } = { looked: 0, matching: 0 }] = rows
  return looked === 0 ? 0 : matching / looked
}

/** Returns about how many contacts an audience has, by its entries in the index of samples. */
async function expectedSize(trx: Trx, audienceId: string, scanned: number): Promise<number> {
  const { rows } = await sql<{ entries: number }>`
    SELECT count(*)::int AS entries FROM (
      SELECT FROM contacts WHERE audience_id = ${audienceId} AND ${isSampled} LIMIT ${scanned + 1}
    ) AS entries
  `.execute(trx)
  const entries = rows[0]?.entries ?? 0
  if (entries <= scanned) return entries * sampledOneIn
  const { rows: plans } = await sql<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>`
    EXPLAIN (FORMAT JSON) SELECT FROM contacts WHERE audience_id = ${audienceId}
  `.execute(trx)
  return Math.max(entries * sampledOneIn, plans[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0)
}

const tooMany = new DomainError(
  'unavailable',
  'Contacts are counted for each account one count after the other, and a few for all: try again.',
  { retryAfterSeconds: 10 },
)

const tooSlow = new DomainError('unavailable', 'The database was too busy to count these contacts: try again later.', {
  retryAfterSeconds: 30,
})
