import { type Kysely, sql } from 'kysely'

/** Counts for how many people each variant of a campaign could not be rendered. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- By variant. Null of a variant: it was rendered for somebody.
    ALTER TABLE campaigns ADD COLUMN ab_failed integer[];
    -- Nothing is known of those that are being sent: what fails from here on may have been rendered before.
    UPDATE campaigns SET ab_failed = array_fill(NULL::int, ARRAY[json_array_length(ab_test -> 'variants')])
    WHERE ab_test IS NOT NULL AND status IN ('sending', 'paused');
  `)
    .execute(db)
}
