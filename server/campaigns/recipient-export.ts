import { sql } from 'kysely'
import type { Handle } from '../database/connection.ts'
import type { Properties } from '../database/tables/people.ts'
import { csvRow } from '../lib/csv.ts'
import type { DeclaredProperty } from '../subscribers/properties.ts'
import type { CampaignKey, RecipientRow } from './queries.ts'

/** Recipients read by one statement. */
const pageRows = 1_000

type ExportRow = Omit<RecipientRow, 'send_at'> & {
  first_name: string | null
  last_name: string | null
  properties: Properties | null
}

type Export = CampaignKey & {
  /** True: who waits gets nothing any more. */
  isCanceled: boolean
  declared: readonly DeclaredProperty[]
}

/**
 * Yields the recipients of a campaign as CSV, oldest subscribers first, page by page. A page is read when the one
 * before was taken. Each row is as it is when its page is read.
 */
export async function* exportRecipients(
  handle: Handle,
  { accountId, id, isCanceled, declared }: Export,
): AsyncGenerator<string> {
  const keys = declared.map(({ key }) => key)
  yield csvRow(['email', 'first_name', 'last_name', 'recipient_status', 'reason', 'email_status', 'email_id', ...keys])
  for (let after = ''; ; ) {
    const rows = await selectPage(handle, { accountId, id }, after)
    if (rows.length > 0) yield rows.map((row) => rowOf(row, { isCanceled, keys })).join('')
    after = rows.at(-1)?.subscriber_id ?? after
    if (rows.length < pageRows) return
  }
}

async function selectPage(handle: Handle, { accountId, id }: CampaignKey, after: string): Promise<ExportRow[]> {
  const { rows } = await sql<ExportRow>`
    SELECT r.subscriber_id, r.status, r.reason, r.email_id, s.email, s.first_name, s.last_name, s.properties,
      e.status AS email_status
    FROM (
      SELECT subscriber_id, status, reason, email_id FROM campaign_recipients
      WHERE account_id = ${accountId} AND campaign_id = ${id} AND subscriber_id > ${after}
      ORDER BY account_id, campaign_id, subscriber_id LIMIT ${pageRows}
    ) AS r
    -- OFFSET 0 makes the planner look up each row by its key, whatever the statistics say.
    LEFT JOIN LATERAL (
      SELECT email, first_name, last_name, properties FROM subscribers
      WHERE id = r.subscriber_id AND account_id = ${accountId} OFFSET 0
    ) AS s ON true
    LEFT JOIN LATERAL (
      SELECT status FROM email_recipients WHERE email_id = r.email_id AND position = 0 OFFSET 0
    ) AS e ON true
    ORDER BY r.subscriber_id
  `.execute(handle)
  return rows
}

function rowOf(row: ExportRow, { isCanceled, keys }: { isCanceled: boolean; keys: readonly string[] }): string {
  const status = isCanceled && row.status === 'waiting' ? 'canceled' : row.status
  const properties = row.properties ?? {}
  const values = keys.map((key) => (Object.hasOwn(properties, key) ? (properties[key] ?? null) : null))
  const { email, first_name, last_name, reason, email_status, email_id } = row
  return csvRow([email, first_name, last_name, status, reason, email_status, email_id, ...values])
}
