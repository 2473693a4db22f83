import { type Kysely, sql } from 'kysely'

/** Counts for how many people each variant of a campaign could not be rendered. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- By variant. Null of a variant: it was rendered for somebody.
    ALTER TABLE campaigns ADD COLUMN ab_failed integer[];
  `)
    .execute(db)
}
