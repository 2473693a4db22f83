import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Trx } from '../database/connection.ts'
import { countRecipients } from '../statistics/count-recipients.ts'

type Row = {
  mode: Mode
  domain_id: string | null
  campaign_id: string | null
  variant: number | null
  tags: string[]
  domain: string
}

/**
 * Counts that a recipient has unsubscribed with the link of an email, once for each recipient. Does nothing for an email
 * that was deleted. Locks the recipient: call it before people are locked, as recording what happens to emails does.
 */
export async function countUnsubscribed(
  trx: Trx,
  { accountId, emailId, position, at }: { accountId: string; emailId: string; position: number; at: Date },
): Promise<void> {
  const { rows } = await sql<Row>`
    UPDATE email_recipients r SET unsubscribed_at = ${at} FROM emails e
    WHERE r.email_id = ${emailId} AND r.position = ${position} AND r.account_id = ${accountId}
      AND r.unsubscribed_at IS NULL AND e.id = ${emailId} AND e.account_id = ${accountId}
    RETURNING e.mode, e.domain_id, e.campaign_id, e.variant, e.tags, r.domain
  `.execute(trx)
  await countRecipients(
    trx,
    rows.map(({ mode, domain_id: domainId, campaign_id: campaignId, variant, tags, domain: recipientDomain }) => ({
      scope: { accountId, mode },
      domainId,
      tags,
      campaignId,
      recipientDomain,
      at,
      figures: ['unsubscribed'],
      variant: variant === null ? null : { number: variant, figures: ['unsubscribed'] },
    })),
  )
}
