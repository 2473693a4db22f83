import { type Kysely, sql } from 'kysely'

/**
 * Why a recipient that was not sent to did not get the email, as a code. The sentence in `reason` is for people. Blocks
 * the table for a moment only: nothing is written to its rows. Whom a process of an older version withholds meanwhile
 * counts as `suppressed` in the figures of their campaign.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`ALTER TABLE email_recipients ADD COLUMN withheld_for text`.execute(db)
}
