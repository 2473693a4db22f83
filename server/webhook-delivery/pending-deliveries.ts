import type { Handle } from '../database/connection.ts'

/** The ids of up to `limit` deliveries of a webhook that are pending, the oldest behind `after` first. */
export async function pageOfPending(
  handle: Handle,
  { webhookId, after, limit }: { webhookId: string; after: string; limit: number },
): Promise<string[]> {
  const rows = await handle
    .selectFrom('deliveries')
    .select('id')
    .where('webhook_id', '=', webhookId)
    .where('status', '=', 'pending')
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute()
  return rows.map(({ id }) => id)
}
