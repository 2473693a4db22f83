import { sql } from 'kysely'
import { type Handle, inTransaction } from '../database/connection.ts'
import { readInOrder } from '../database/index-order.ts'
import { executePrepared } from '../database/prepared.ts'
import { subjectKey } from '../message/subject-key.ts'
import type { Scope } from '../shared/scope.ts'
import type { Search, TextRange } from './search-text.ts'

/*
 * Which emails fit a search, newest first and in bounded time, however many emails an account has.
 *
 * The indexes hold addresses and subjects in order, with the ids of the emails of each: `email_recipients_by_address` and
 * the primary key of `email_subjects`. A prefix of up to `maxKeys` different addresses and subjects is read from them: the
 * newest emails of each. For a prefix of more, the newest emails of the account are looked through.
 */

/** The most different addresses, and subjects, whose emails are read one by one. */
export const maxKeys = 200
/** Emails that are read of each, and looked at for a page. */
export const candidates = 200
/** Emails of the account that are looked through for a page, when a prefix has too many addresses or subjects. */
export const emailsLookedThrough = 2_000

/** Exclusive bounds of ids. */
export type IdRange = { above: string; below: string }

/** Emails that may be on a page: those of its scope and filters are. Newest first. */
export type Candidates = {
  ids: string[]
  /** The id of the last email that was looked at. Null: there is none below. */
  lookedTo: string | null
}

type KeyRow = { email_id: string | null; too_many: boolean }

const noTexts: TextRange = { from: '', below: '' }

/**
 * Returns the statement that reads the emails of all addresses and subjects that fit. Row comparisons, so that only one
 * index has the order.
 */
function fromKeys({ accountId, mode }: Scope, search: Search, { above, below }: IdRange) {
  const addresses = search.addresses ?? noTexts
  const subjects = search.subjects ?? noTexts
  const most = sql.lit(candidates)
  return sql<KeyRow>`
    WITH RECURSIVE address (key, number) AS (
      (SELECT address_key, 1 FROM email_recipients
        WHERE (account_id, address_key) >= (${accountId}, ${addresses.from})
          AND (account_id, address_key) < (${accountId}, ${addresses.below})
        ORDER BY account_id, address_key LIMIT 1)
      UNION ALL
      SELECT next.address_key, number + 1 FROM address CROSS JOIN LATERAL (
        SELECT address_key FROM email_recipients
        WHERE (account_id, address_key) > (${accountId}, address.key)
          AND (account_id, address_key) < (${accountId}, ${addresses.below})
        ORDER BY account_id, address_key LIMIT 1
      ) next WHERE number <= ${sql.lit(maxKeys)}
    ), subject (key, number) AS (
      (SELECT subject_key, 1 FROM email_subjects
        WHERE (account_id, mode, subject_key) >= (${accountId}, ${mode}, ${subjects.from})
          AND (account_id, mode, subject_key) < (${accountId}, ${mode}, ${subjects.below})
        ORDER BY account_id, mode, subject_key LIMIT 1)
      UNION ALL
      SELECT next.subject_key, number + 1 FROM subject CROSS JOIN LATERAL (
        SELECT subject_key FROM email_subjects
        WHERE (account_id, mode, subject_key) > (${accountId}, ${mode}, subject.key)
          AND (account_id, mode, subject_key) < (${accountId}, ${mode}, ${subjects.below})
        ORDER BY account_id, mode, subject_key LIMIT 1
      ) next WHERE number <= ${sql.lit(maxKeys)}
    ), bounds AS MATERIALIZED (
      SELECT greatest((SELECT count(*) FROM address), (SELECT count(*) FROM subject)) > ${sql.lit(maxKeys)} AS too_many
    ), found AS (
      SELECT r.email_id FROM address CROSS JOIN LATERAL (
        SELECT email_id FROM email_recipients
        WHERE (account_id, address_key, email_id) < (${accountId}, address.key, ${below})
          AND (account_id, address_key, email_id) > (${accountId}, address.key, ${above})
        ORDER BY account_id DESC, address_key DESC, email_id DESC LIMIT ${most}
      ) r
      WHERE NOT (SELECT too_many FROM bounds)
      UNION
      SELECT s.email_id FROM subject CROSS JOIN LATERAL (
        SELECT email_id FROM email_subjects
        WHERE (account_id, mode, subject_key, email_id) < (${accountId}, ${mode}, subject.key, ${below})
          AND (account_id, mode, subject_key, email_id) > (${accountId}, ${mode}, subject.key, ${above})
        ORDER BY account_id DESC, mode DESC, subject_key DESC, email_id DESC LIMIT ${most}
      ) s
      WHERE NOT (SELECT too_many FROM bounds)
    )
    SELECT f.email_id, bounds.too_many FROM bounds LEFT JOIN (
      SELECT email_id FROM found ORDER BY email_id DESC LIMIT ${most}
    ) f ON true
    ORDER BY f.email_id DESC
  `
}

type Searching = { search: Search; range: IdRange }

/** Returns emails that fit a search, newest first. Some may be of the other mode: the caller looks at that. */
export async function searchEmails(handle: Handle, scope: Scope, { search, range }: Searching): Promise<Candidates> {
  const { ids, id } = search
  if (ids !== null) return selectNewest(handle, scope, within(range, ids), candidates)
  return inTransaction(handle, async (trx) => {
    await readInOrder(trx, {})
    const found = await executePrepared(trx, { name: 'search_emails' }, fromKeys(scope, search, range))
    if (found[0]?.too_many) return lookThrough(trx, scope, { search, range })
    const fitting = found.flatMap(({ email_id }) => (email_id === null ? [] : [email_id]))
    const lookedTo = fitting.length === candidates ? (fitting.at(-1) ?? null) : null
    const isOnPage = id !== null && id > range.above && id < range.below && (lookedTo === null || id >= lookedTo)
    return { ids: isOnPage ? [...fitting, id] : fitting, lookedTo }
  })
}

/** Returns the part of `range` that begins as `ids` do. */
function within(range: IdRange, { from, below }: TextRange): IdRange {
  // Without its last character it is below every id that begins so, and above all that are below these.
  const above = from.slice(0, -1)
  return { above: above > range.above ? above : range.above, below: below < range.below ? below : range.below }
}

type LookedAt = { id: string; subject: string; is_to: boolean }

/** Looks through the newest emails of the range for those that fit. */
async function lookThrough(
  handle: Handle,
  { accountId, mode }: Scope,
  { search, range }: Searching,
): Promise<Candidates> {
  const { addresses, subjects, id } = search
  const isTo =
    addresses === null
      ? sql`false`
      : sql`EXISTS (SELECT FROM email_recipients WHERE email_id = e.id
          AND address_key >= ${addresses.from} AND address_key < ${addresses.below} OFFSET 0)`
  const { rows } = await sql<LookedAt>`
    SELECT e.id, s.subject, ${isTo} AS is_to FROM (${newestOf({ accountId, mode }, range, emailsLookedThrough)}) e
    CROSS JOIN LATERAL (SELECT left(subject, 400) AS subject FROM emails WHERE id = e.id OFFSET 0) s
    ORDER BY e.id DESC
  `.execute(handle)
  const fits = (row: LookedAt) =>
    row.is_to || row.id === id || (subjects !== null && subjectKey(row.subject).startsWith(subjects.from))
  return {
    ids: rows.filter(fits).map((row) => row.id),
    lookedTo: rows.length === emailsLookedThrough ? (rows.at(-1)?.id ?? null) : null,
  }
}

/** Returns a query for the newest ids of the range. It reads an index alone: with other columns it might be sorted. */
function newestOf({ accountId, mode }: Scope, { above, below }: IdRange, limit: number) {
  return sql<{ id: string }>`
    SELECT id FROM emails
    WHERE (account_id, mode, id) < (${accountId}, ${mode}, ${below})
      AND (account_id, mode, id) > (${accountId}, ${mode}, ${above})
    ORDER BY account_id DESC, mode DESC, id DESC LIMIT ${sql.lit(limit)}
  `
}

/** Returns the newest emails of the range: those that a list without an index for its filters looks through. */
export async function selectNewest(
  handle: Handle,
  scope: Scope,
  range: IdRange,
  limit = emailsLookedThrough,
): Promise<Candidates> {
  const { rows } = await newestOf(scope, range, limit).execute(handle)
  return { ids: rows.map(({ id }) => id), lookedTo: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
}
