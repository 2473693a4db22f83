import { type Kysely, sql } from 'kysely'

/** Finds the person that an email of a campaign was written to, for its link to unsubscribe. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE INDEX campaign_recipients_by_email ON campaign_recipients (email_id) WHERE email_id IS NOT NULL
  `.execute(db)
}
