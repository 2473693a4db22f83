import { type Kysely, sql } from 'kysely'

/** Variants of a campaign that are templates. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE campaign_variants
      -- It may be deleted. Null: the content is the variant's own.
      ADD COLUMN template_id text COLLATE "C",
      -- The version that was copied when the campaign was sent. Null: none.
      ADD COLUMN template_version integer,
      -- Values for the copy, with the fallbacks of the template.
      ADD COLUMN constants json;
  `)
    .execute(db)
}
