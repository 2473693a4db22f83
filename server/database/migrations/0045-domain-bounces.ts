import type { Kysely } from 'kysely'
import type { Handle } from '../connection.ts'
import { createUnlessLarge } from '../large-indexes.ts'

/** An index for counting what bounced of a sending domain, however much bounced of the others. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await createUnlessLarge(db as unknown as Handle, 'emails_bounced')
}
