import { sql } from 'kysely'
import type { Handle } from '../database/connection.ts'
import type { Properties } from '../database/tables/people.ts'
import { csvRow } from '../lib/csv.ts'
import type { DeclaredProperty } from '../subscribers/properties.ts'
import type { CampaignKey, CampaignRow, RecipientRow } from './queries.ts'
import { variantOf } from './to-response.ts'

/** Recipients read by one statement. */
const pageRows = 1_000

type ExportRow = Omit<RecipientRow, 'send_at'> & {
  first_name: string | null
  last_name: string | null
  properties: Properties | null
}

type Export = {
  campaign: CampaignRow
  declared: readonly DeclaredProperty[]
}

/**
 * Yields the recipients of a campaign as CSV, oldest subscribers first, page by page. A page is read when the one
 * before was taken. Each row is as it is when its page is read.
 */
export async function* exportRecipients(handle: Handle, { campaign, declared }: Export): AsyncGenerator<string> {
  const key = { accountId: campaign.account_id, id: campaign.id }
  const keys = declared.map(({ key }) => key)
  const ofRecipient = ['recipient_status', 'reason', 'email_status', 'email_id', 'variant']
  yield csvRow(['email', 'first_name', 'last_name', ...ofRecipient, ...keys])
  for (let after = ''; ; ) {
    const rows = await selectPage(handle, key, after)
    if (rows.length > 0) yield rows.map((row) => rowOf(row, { campaign, keys })).join('')
    after = rows.at(-1)?.subscriber_id ?? after
    if (rows.length < pageRows) return
  }
}

async function selectPage(handle: Handle, { accountId, id }: CampaignKey, after: string): Promise<ExportRow[]> {
  const { rows } = await sql<ExportRow>`
    SELECT r.subscriber_id, r.status, r.reason, r.variant, r.email_id, s.email, s.first_name, s.last_name, s.properties,
      e.status AS email_status
    FROM (
      SELECT subscriber_id, status, reason, variant, email_id FROM campaign_recipients
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

function rowOf(row: ExportRow, { campaign, keys }: { campaign: CampaignRow; keys: readonly string[] }): string {
  // Who waits when it is canceled gets nothing any more.
  const status = campaign.status === 'canceled' && row.status === 'waiting' ? 'canceled' : row.status
  const properties = row.properties ?? {}
  const values = keys.map((key) => (Object.hasOwn(properties, key) ? (properties[key] ?? null) : null))
  const { email, first_name, last_name, reason, email_status, email_id } = row
  return csvRow([
    email,
    first_name,
    last_name,
    status,
    reason,
    email_status,
    email_id,
    variantOf(campaign, row),
    ...values,
  ])
}
