import { type RawBuilder, sql } from 'kysely'
import type { Contact } from '../../contract/contacts.ts'
import type { Page } from '../../contract/pagination.ts'
import { lookedThrough } from '../database/bounded-lists.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import { isTimedOut, limitStatements } from '../database/statement-timeout.ts'
import { createKeyedSemaphore } from '../lib/semaphore.ts'
import { DomainError } from '../shared/errors.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import { type DeclaredProperty, propertiesShower } from '../subscribers/properties.ts'
import { exportContacts, selectMatching } from './contact-export.ts'
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

export type MatchLimits = {
  /** Contacts of an audience up to which it is counted exactly. */
  exactUpTo: number
  /** Milliseconds that an exact count may take. */
  exactMs: number
  /** Milliseconds that looking at contacts may take: after that, fewer are looked at. */
  lookMs: number
  /** Milliseconds that an exact count of a small audience may take, and the size of a large one. */
  longestMs: number
  /** Contacts that an estimate is made from, at most. */
  sample: number
  /** Entries of the index of samples that are counted at most. Beyond, the size of an audience is what the planner expects. */
  scanned: number
  /** Statements at once in this process, of all accounts together. */
  atOnce: number
  /** Milliseconds that a count or a list waits for its turn. */
  patienceMs: number
}

export const usualMatchLimits: MatchLimits = {
  exactUpTo: 200_000,
  exactMs: 1_500,
  lookMs: 1_500,
  longestMs: 5_000,
  sample: 10_000,
  scanned: 1_000_000,
  atOnce: 4,
  patienceMs: 10_000,
}

export type MatchCount = { count: number; isEstimate: boolean }

/** The match of a list. It reads the people anyway, so `isOfStatusAlone` would not help. */
type ListedMatch = Omit<ContactMatch, 'isOfStatusAlone'>

/**
 * Compares contacts with conditions at a bounded cost, however slow they are: in this process an account has one statement
 * at a time, with a time limit. Its functions throw `unavailable` when the turn does not come, and when even few
 * contacts take too long. They need a handle outside of a transaction, which a time limit would end.
 */
export type ContactMatching = {
  /**
   * Counts contacts. The count is exact for an audience of at most `exactUpTo` contacts, and for a condition on the status
   * alone, unless it takes longer than `exactMs`. Otherwise it is an estimate from a sample that depends on nothing but
   * the contacts. Of an audience of at most `sample` contacts it is exact unless it takes longer than `longestMs`.
   */
  count(handle: Handle, match: ContactMatch): Promise<MatchCount>
  /** Returns contacts, newest subscribers first. A page may have fewer than `limit` of them: see `selectFitting`. */
  list(handle: Handle, page: ListedMatch & { limit: number; cursor?: string | undefined }): Promise<Page<Contact>>
  /** Yields contacts as CSV: see `exportContacts`. */
  exportCsv(handle: Handle, match: ListedMatch & { declared: readonly DeclaredProperty[] }): AsyncGenerator<string>
}

/** How long a page of an export waits for its turn: the client waits anyway. Milliseconds. */
const exportPatienceMs = 60_000
/** Contacts that an estimate is made from, at least: of 25, its error is a fifth of the audience in 19 of 20 cases. */
const leastSample = 25
/** Each try looks at so many times fewer contacts than the one before, which took too long. */
const fewer = 20

/** @param limits Default: `usualMatchLimits`. */
export function createContactMatching(limits: Partial<MatchLimits> = {}): ContactMatching {
  const { exactUpTo, exactMs, lookMs, longestMs, sample, scanned, atOnce, patienceMs } = {
    ...usualMatchLimits,
    ...limits,
  }
  const turns = createKeyedSemaphore({ permits: atOnce, holdersPerKey: 1 })

  async function counted(handle: Handle, match: ContactMatch): Promise<MatchCount> {
    const size = await within(handle, longestMs, (trx) => expectedSize(trx, match.audienceId, scanned))
    if (size === null) throw tooSlow
    if (match.isOfStatusAlone || size <= exactUpTo) {
      // A sample of a small audience would be too small, so an exact count of it has more time.
      const limitMs = size <= sample ? longestMs : exactMs
      const count = await within(handle, limitMs, (trx) => countExactly(trx, match))
      if (count !== null) return { count, isEstimate: false }
      if (size === 0) throw tooSlow
    }
    const share = await look(handle, { most: sample, least: leastSample }, (trx, contacts) =>
      sampledShare(trx, match, contacts),
    )
    return { count: Math.round(size * share), isEstimate: true }
  }

  async function inTurn<T>(accountId: string, waitMs: number, work: () => Promise<T>): Promise<T> {
    const leave = await turns.acquire({ key: accountId }, AbortSignal.timeout(waitMs))
    if (leave === null) throw tooMany
    try {
      return await work()
    } finally {
      leave()
    }
  }

  /** Has `work` look at `most` contacts, or at fewer when that takes too long, but at no fewer than `least`. */
  async function look<T>(
    handle: Handle,
    { most, least }: { most: number; least: number },
    work: (trx: Trx, contacts: number) => Promise<T>,
  ): Promise<T> {
    for (let contacts = most; ; contacts = Math.ceil(contacts / fewer)) {
      const found = await within(handle, lookMs, (trx) => work(trx, contacts))
      if (found !== null) return found
      if (contacts === 1 || Math.ceil(contacts / fewer) < least) throw tooSlow
    }
  }

  return {
    count: (handle, match) => inTurn(match.accountId, patienceMs, () => counted(handle, match)),
    async list(handle, { accountId, audienceId, condition, limit, cursor }) {
      const after = decodeCursor('subscriber', cursor)
      const page = { audienceId, matching: condition, after, limit: limit + 1 }
      const { rows, lookedTo } = await inTurn(accountId, patienceMs, () =>
        look(handle, { most: lookedThrough, least: 1 }, (trx, looked) =>
          selectContacts(trx, accountId, { ...page, looked }),
        ),
      )
      const show = await propertiesShower(handle, accountId, rows)
      const toItem = (row: ContactRow) => toContact(row, show)
      return pageOfRows(rows, { limit, idOf: (row) => row.subscriber_id, toItem, lookedTo })
    },
    exportCsv(handle, { accountId, audienceId, condition, declared }) {
      return exportContacts(handle, {
        accountId,
        audienceId,
        declared,
        readPage: (page) =>
          inTurn(accountId, exportPatienceMs, () =>
            look(handle, { most: page.limit, least: 1 }, (trx, limit) =>
              selectMatching(trx, { ...page, limit }, condition),
            ),
          ),
      })
    },
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
  'Too many requests for the people of segments are waiting: try again in 10 seconds.',
  { retryAfterSeconds: 10 },
)

const tooSlow = new DomainError(
  'unavailable',
  'The database was too busy to compare these contacts with the segment: try again later.',
  { retryAfterSeconds: 30 },
)
