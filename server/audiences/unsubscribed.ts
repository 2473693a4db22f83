import type { Handle } from '../database/connection.ts'
import { findUnsubscribed } from './contact-queries.ts'

/**
 * Returns the keys, as `addressKey` makes them, of the addresses whose owners get no emails to an audience: they have
 * unsubscribed from it or from everything, or have not confirmed yet. Returns null when there is no such audience.
 */
export async function unsubscribedFrom(
  handle: Handle,
  accountId: string,
  { id, addressKeys }: { id: string; addressKeys: readonly string[] },
): Promise<Set<string> | null> {
  const found = await findUnsubscribed(handle, { accountId, audienceId: id, addressKeys })
  return found === undefined ? null : new Set(found)
}
