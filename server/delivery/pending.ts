import type { Handle } from '../database/connection.ts'

const pageSize = 5_000

/** The ids of all deliveries of a webhook that are pending, oldest first, page by page. */
export async function* pagesOfPending(handle: Handle, webhookId: string): AsyncGenerator<string[]> {
  for (let after = ''; ; ) {
    const rows = await handle
      .selectFrom('deliveries')
      .select('id')
      .where('webhook_id', '=', webhookId)
      .where('status', '=', 'pending')
      .where('id', '>', after)
      .orderBy('id')
      .limit(pageSize)
      .execute()
    const ids = rows.map(({ id }) => id)
    yield ids
    if (ids.length < pageSize) return
    after = ids.at(-1) as string
  }
}
