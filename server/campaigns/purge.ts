import { sql } from 'kysely'
import { inTransaction, type Trx } from '../database/connection.ts'
import { type CampaignKey, deleteCampaign, setDue, updateCampaign } from './queries.ts'
import { atOnce, type EngineMeans, type TurnResult } from './turns.ts'

/** Recipients that one transaction deletes. */
const deletedAtOnce = 10_000

/**
 * Deletes the next recipients of a campaign that was deleted, and after the last one the campaign. When a process dies
 * between two steps, another one goes on from there.
 */
export async function purge(means: Pick<EngineMeans, 'db' | 'bulkPause'>, key: CampaignKey): Promise<TurnResult> {
  const limit = atOnce(means, deletedAtOnce)
  return inTransaction(means.db, async (trx) => {
    const from = await lockDeleted(trx, key)
    if (from === null) return 'waits'
    const { last, count } = await deleteRecipients(trx, key, { after: from, limit })
    if (last === null || count < limit) {
      await deleteCampaign(trx, key)
      return 'waits'
    }
    await updateCampaign(trx, key, { handled_to: last })
    await setDue(trx, key, 0)
    return 'went on'
  })
}

/** Returns the last recipient that was deleted. Null: the campaign is gone. */
async function lockDeleted(trx: Trx, { accountId, id }: CampaignKey): Promise<string | null> {
  const row = await trx
    .selectFrom('campaigns')
    .select('handled_to')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('deleted_at', 'is not', null)
    .forUpdate()
    .executeTakeFirst()
  return row?.handled_to ?? null
}

/** Begins behind `after`, so that no step reads over the rows that those before have left dead in the index. */
async function deleteRecipients(
  trx: Trx,
  { accountId, id }: CampaignKey,
  { after, limit }: { after: string; limit: number },
): Promise<{ last: string | null; count: number }> {
  const { rows } = await sql<{ last: string | null; count: number }>`
    WITH page AS MATERIALIZED (
      SELECT subscriber_id FROM campaign_recipients
      WHERE account_id = ${accountId} AND campaign_id = ${id} AND subscriber_id > ${after}
      ORDER BY account_id, campaign_id, subscriber_id LIMIT ${limit}
    ), gone AS (
      DELETE FROM campaign_recipients
      WHERE account_id = ${accountId} AND campaign_id = ${id} AND subscriber_id > ${after}
        AND subscriber_id <= (SELECT max(subscriber_id) FROM page)
      RETURNING subscriber_id
    )
    SELECT max(subscriber_id) AS last, count(*)::int AS count FROM gone
  `.execute(trx)
  return rows[0] ?? { last: null, count: 0 }
}
