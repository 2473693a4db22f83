import { type Kysely, sql } from 'kysely'

/**
 * The tags of emails in the order of their list, for each account. The inverted index that this replaces has no order
 * and mixes all accounts: the newest emails with a tag were found by a walk over all emails of the account, or by
 * sorting all emails with the tag.
 *
 * Triggers write it, so that it is complete beside a process of an older version. The tags of the emails that are there
 * are added in the background, the newest first: see `server/emails/older-emails.ts`. Until that is done, a list by tag
 * looks through the emails.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- First, because it needs the strongest lock: taking it after a weaker one could be a deadlock.
    DROP INDEX emails_by_tag;

    CREATE TABLE email_tags (
      account_id text COLLATE "C" NOT NULL,
      mode text COLLATE "C" NOT NULL,
      tag text COLLATE "C" NOT NULL,
      email_id text COLLATE "C" NOT NULL,
      PRIMARY KEY (account_id, mode, tag, email_id)
    );

    CREATE FUNCTION add_email_tags() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO email_tags (account_id, mode, tag, email_id)
      SELECT NEW.account_id, NEW.mode, tag, NEW.id FROM unnest(NEW.tags) AS t (tag) ON CONFLICT DO NOTHING;
      RETURN NULL;
    END $$;
    CREATE TRIGGER add_tags AFTER INSERT ON emails
      FOR EACH ROW WHEN (NEW.tags <> '{}') EXECUTE FUNCTION add_email_tags();

    -- In place of a foreign key, which would look up the email of each row, and need an index for deleting.
    CREATE FUNCTION delete_email_tags() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      DELETE FROM email_tags
      WHERE account_id = OLD.account_id AND mode = OLD.mode AND tag = ANY(OLD.tags) AND email_id = OLD.id;
      RETURN NULL;
    END $$;
    CREATE TRIGGER delete_tags AFTER DELETE ON emails
      FOR EACH ROW WHEN (OLD.tags <> '{}') EXECUTE FUNCTION delete_email_tags();

    INSERT INTO settings (name, value)
    SELECT 'email_tags_below', id || '~' FROM emails ORDER BY id DESC LIMIT 1;
  `)
    .execute(db)
}
