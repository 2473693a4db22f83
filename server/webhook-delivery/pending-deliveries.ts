import type { Handle } from '../database/connection.ts'

/** Returns the ids of up to `limit` pending deliveries of a webhook with ids above `after`, in order of id. */
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
