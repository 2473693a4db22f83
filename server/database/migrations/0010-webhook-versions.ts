import { type Kysely, sql } from 'kysely'

/**
 * Versions of webhooks. One grows with each change of what says where a webhook leads and how it is signed for, and
 * every process that works hears of it as that commits. By triggers, since processes of the version before change
 * webhooks too. The column has a constant default: no row is rewritten.
 *
 * A NOTIFY inside a transaction has the commits that notify wait for one another: webhooks change rarely.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE webhooks ADD COLUMN version integer NOT NULL DEFAULT 1;

    CREATE FUNCTION tell_of_changed_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.version := OLD.version + 1;
      PERFORM pg_notify('webhook_changed', NEW.id || ' ' || NEW.version);
      RETURN NEW;
    END $$;
    CREATE TRIGGER tell_of_change BEFORE UPDATE OF url, status, secret, previous_secret, previous_secret_expires_at,
      earlier_secrets, earlier_secrets_expire_at ON webhooks
      FOR EACH ROW WHEN (
        (OLD.url, OLD.status, OLD.secret, OLD.previous_secret, OLD.previous_secret_expires_at, OLD.earlier_secrets,
          OLD.earlier_secrets_expire_at)
        IS DISTINCT FROM
        (NEW.url, NEW.status, NEW.secret, NEW.previous_secret, NEW.previous_secret_expires_at, NEW.earlier_secrets,
          NEW.earlier_secrets_expire_at)
      ) EXECUTE FUNCTION tell_of_changed_webhook();

    -- Also of those that go with their account.
    CREATE FUNCTION tell_of_deleted_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_notify('webhook_changed', OLD.id || ' Infinity');
      RETURN NULL;
    END $$;
    CREATE TRIGGER tell_of_deletion AFTER DELETE ON webhooks
      FOR EACH ROW EXECUTE FUNCTION tell_of_deleted_webhook();
  `)
    .execute(db)
}
