import { type Kysely, sql } from 'kysely'

/**
 * Keeps the URLs of webhooks by version, so that an attempt tells where it went after the URL has changed. An attempt
 * keeps the version of its webhook, which is smaller than a URL. By triggers, since processes of the version before
 * change webhooks too.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- Attempts are locked before webhooks, in the order of settlements. A test of a webhook that succeeds locks them the
    -- other way round: where it meets this, one of both begins again.
    -- Null: not known. Processes of the version before do not write it.
    ALTER TABLE attempts ADD COLUMN webhook_version integer;

    -- The URL of a version is that of the greatest version here which is not above it.
    CREATE TABLE webhook_urls (
      webhook_id text COLLATE "C" NOT NULL,
      version integer NOT NULL,
      url text NOT NULL,
      PRIMARY KEY (webhook_id, version)
    );
    CREATE FUNCTION keep_webhook_url() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO webhook_urls VALUES (NEW.id, NEW.version, NEW.url);
      -- A limit, so that changing a URL in a loop does not fill the disk: keptWebhookUrls in contract/deliveries.ts.
      DELETE FROM webhook_urls WHERE webhook_id = NEW.id AND version <= (
        SELECT version FROM webhook_urls WHERE webhook_id = NEW.id ORDER BY version DESC OFFSET 20 LIMIT 1
      );
      RETURN NULL;
    END $$;
    CREATE TRIGGER keep_first_url AFTER INSERT ON webhooks FOR EACH ROW EXECUTE FUNCTION keep_webhook_url();
    CREATE TRIGGER keep_changed_url AFTER UPDATE OF url ON webhooks
      FOR EACH ROW WHEN (OLD.url IS DISTINCT FROM NEW.url) EXECUTE FUNCTION keep_webhook_url();
    -- With the lock that the triggers needed, so that no change of a URL is missed.
    INSERT INTO webhook_urls SELECT id, version, url FROM webhooks;
    ALTER TABLE webhook_urls ADD FOREIGN KEY (webhook_id) REFERENCES webhooks ON DELETE CASCADE;
  `)
    .execute(db)
}
