import type { Handle } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import { csvRow } from '../lib/csv.ts'
import type { DeclaredProperty } from '../subscribers/properties.ts'
import type { ContactRow } from './contact-queries.ts'

/** Contacts read by one statement. */
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

/**
 * Yields the contacts of an audience as CSV, oldest subscribers first, page by page: a page is read when the one before
 * was taken. Contacts that come or go meanwhile may be in it or not.
 */
export async function* exportContacts(
  handle: Handle,
  { accountId, audienceId, declared }: { accountId: string; audienceId: string; declared: readonly DeclaredProperty[] },
): AsyncGenerator<string> {
  const keys = declared.map(({ key }) => key)
  yield csvRow(['email', 'first_name', 'last_name', 'status', 'created_at', ...keys])
  for (let after = ''; ; ) {
    const rows = await selectPage(handle, { accountId, audienceId, after, limit: pageRows })
    if (rows.length > 0) yield rows.map((row) => rowOf(row, keys)).join('')
    after = rows.at(-1)?.subscriber_id ?? after
    if (rows.length < pageRows) return
  }
}

function rowOf(row: ContactRow, keys: readonly string[]): string {
  const values = keys.map((key) => (Object.hasOwn(row.properties, key) ? (row.properties[key] ?? null) : null))
  return csvRow([row.email, row.first_name, row.last_name, row.status, row.created_at.toISOString(), ...values])
}
