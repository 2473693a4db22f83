import type { Handle } from '../database/connection.ts'

/** How many deliveries are dealt with in one transaction, where there may be any number. */
export const pageSize = 5_000

/** The ids of up to `pageSize` deliveries of a webhook that are pending, the oldest behind `after` first. */
export async function pageOfPending(handle: Handle, webhookId: string, after: string): Promise<string[]> {
  const rows = await handle
    .selectFrom('deliveries')
    .select('id')
    .where('webhook_id', '=', webhookId)
    .where('status', '=', 'pending')
    .where('id', '>', after)
    .orderBy('id')
    .limit(pageSize)
    .execute()
  return rows.map(({ id }) => id)
}
