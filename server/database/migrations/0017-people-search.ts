import type { Kysely } from 'kysely'
import type { Handle } from '../connection.ts'
import { createUnlessLarge } from '../large-indexes.ts'

/** Indexes for finding people by name and suppressed addresses by reason. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const handle = db as unknown as Handle
  await createUnlessLarge(handle, 'suppressions_by_reason')
  await createUnlessLarge(handle, 'subscribers_by_name')
  await createUnlessLarge(handle, 'subscribers_by_last_name')
}
