import { type Kysely, sql } from 'kysely'

/** MJML, from which the HTML of templates and campaigns is compiled. Null: the HTML is written by hand. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE templates ADD COLUMN mjml text;
    ALTER TABLE campaigns ADD COLUMN mjml text;
  `)
    .execute(db)
}
