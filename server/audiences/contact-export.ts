import { type RawBuilder, sql } from 'kysely'
import type { Handle } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import { csvRow } from '../lib/csv.ts'
import type { DeclaredProperty } from '../subscribers/properties.ts'
import type { ContactRow } from './contact-queries.ts'

/** Contacts that one statement looks at. */
const pageRows = 1_000

type Page = { accountId: string; audienceId: string; after: string; limit: number }

const selectPage = prepare<Page, ContactRow>({ name: 'export_contacts' })`
  SELECT c.audience_id, c.subscriber_id, s.email, s.first_name, s.last_name, c.status, s.properties, c.created_at,
    c.updated_at
  FROM (
    SELECT * FROM contacts
    WHERE (audience_id, subscriber_id) > (${'audienceId'}, ${'after'}) AND audience_id <= ${'audienceId'}
      AND account_id = ${'accountId'}
    ORDER BY audience_id, subscriber_id LIMIT ${'limit'}
  ) AS c
  -- OFFSET 0 makes the planner look up each person by the primary key, whatever the statistics say.
  CROSS JOIN LATERAL (
    SELECT email, first_name, last_name, properties FROM subscribers WHERE id = c.subscriber_id OFFSET 0
  ) AS s
  ORDER BY c.subscriber_id
`

/** Contacts of those that were looked at: at most `limit`. `last`: the last one of these. */
type MatchingPage = { rows: ContactRow[]; looked: number; last: string | null; limit: number }

/** Looks at `limit` contacts, and returns those for whom a condition holds. */
export async function selectMatching(
  handle: Handle,
  { accountId, audienceId, after, limit }: Page,
  condition: RawBuilder<boolean>,
): Promise<MatchingPage> {
  const { rows } = await sql<ContactRow & { looked: number; last: string | null; matches: boolean }>`
    WITH page AS MATERIALIZED (
      SELECT * FROM contacts
      WHERE (audience_id, subscriber_id) > (${audienceId}, ${after}) AND audience_id <= ${audienceId}
        AND account_id = ${accountId}
      ORDER BY audience_id, subscriber_id LIMIT ${limit}
    )
    SELECT m.*, m.subscriber_id IS NOT NULL AS matches, looked, last
    FROM (SELECT count(*)::int AS looked, max(subscriber_id) AS last FROM page) AS bounds
    LEFT JOIN (
      SELECT c.audience_id, c.subscriber_id, s.email, s.first_name, s.last_name, c.status, s.properties, c.created_at,
        c.updated_at
      FROM page AS c CROSS JOIN LATERAL (
        SELECT * FROM subscribers WHERE id = c.subscriber_id AND account_id = ${accountId} OFFSET 0
      ) AS s
      WHERE ${condition}
    ) AS m ON true
    ORDER BY m.subscriber_id
  `.execute(handle)
  const [{ looked, last } = { looked: 0, last: null }] = rows
  return { rows: rows.filter(({ matches }) => matches), looked, last, limit }
}

export type ContactExport = {
  accountId: string
  audienceId: string
  declared: readonly DeclaredProperty[]
  /** Reads a page of the contacts for whom a condition holds: of `limit`, or of fewer. Default: all contacts. */
  readPage?(page: Page): Promise<MatchingPage>
}

/** After a page that looked at fewer contacts, the next one tries so many times as many. */
const growth = 4

/**
 * Yields the contacts of an audience as CSV, oldest subscribers first, page by page: a page is read when the one before
 * was taken. Contacts that come or go meanwhile may be in it or not.
 */
export async function* exportContacts(
  handle: Handle,
  { accountId, audienceId, declared, readPage }: ContactExport,
): AsyncGenerator<string> {
  const keys = declared.map(({ key }) => key)
  yield csvRow(['email', 'first_name', 'last_name', 'status', 'created_at', ...keys])
  let limit = pageRows
  for (let after = ''; ; ) {
    const next = { accountId, audienceId, after, limit }
    const page = readPage === undefined ? await selectAll(handle, next) : await readPage(next)
    if (page.rows.length > 0) yield page.rows.map((row) => rowOf(row, keys)).join('')
    after = page.last ?? after
    if (page.looked < page.limit) return
    limit = Math.min(pageRows, growth * page.limit)
  }
}

async function selectAll(handle: Handle, page: Page): Promise<MatchingPage> {
  const rows = await selectPage(handle, page)
  return { rows, looked: rows.length, last: rows.at(-1)?.subscriber_id ?? null, limit: page.limit }
}

function rowOf(row: ContactRow, keys: readonly string[]): string {
  const values = keys.map((key) => (Object.hasOwn(row.properties, key) ? (row.properties[key] ?? null) : null))
  return csvRow([row.email, row.first_name, row.last_name, row.status, row.created_at.toISOString(), ...values])
}
