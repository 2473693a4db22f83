import { type Kysely, sql } from 'kysely'

/**
 * The beginnings of subjects, for searching emails. A table of its own, whose rows are never updated: an index of
 * `emails` would get an entry for each change of the state of an email, and building it would read the whole table with
 * writers locked out. It has no foreign key, which would look up the email of each row: retention deletes both.
 *
 * The subjects of the emails that are there are added in the background, the newest first: see
 * `server/emails/older-emails.ts`.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE email_subjects (
      account_id text COLLATE "C" NOT NULL,
      mode text COLLATE "C" NOT NULL,
      subject_key text COLLATE "C" NOT NULL,
      email_id text COLLATE "C" NOT NULL,
      PRIMARY KEY (account_id, mode, subject_key, email_id)
    );

    INSERT INTO settings (name, value)
    SELECT 'email_subjects_below', id || '~' FROM emails ORDER BY id DESC LIMIT 1;
  `)
    .execute(db)
}
