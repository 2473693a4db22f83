import { type Kysely, sql } from 'kysely'

/**
 * An event in the outbox can be leased to a process, which makes its deliveries before it writes them down. Until the
 * lease lapses, other processes leave the event alone.
 *
 * Processes of the version before know nothing of leases. They find a view where the table was, which shows what is not
 * leased: they insert, lock and delete through it. The trigger that gives positions stays with the table.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE outbox RENAME TO outbox_rows;
    -- A constant default: no row is written.
    ALTER TABLE outbox_rows ADD COLUMN lease uuid, ADD COLUMN leased_until timestamptz NOT NULL DEFAULT '-infinity';
    -- Few: what processes have in hand.
    CREATE INDEX outbox_rows_leased ON outbox_rows (account_id) WHERE lease IS NOT NULL;

    -- The queue's time. The queue is installed after the migrations, so its name is looked up at the call.
    CREATE FUNCTION lease_time() RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
    BEGIN
      RETURN pgboss.job_now();
    END $$;
    CREATE VIEW outbox AS
      SELECT event_id, account_id, mode, type, positioned FROM outbox_rows WHERE leased_until <= lease_time();

    -- As before, for leased events too.
    CREATE OR REPLACE FUNCTION give_positions_in_outbox(account text, above text, wanted text) RETURNS text
    LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
    DECLARE
      size constant integer := 1000;
      looked_at text[] := ARRAY(
        SELECT event_id FROM outbox_rows
        -- In these words only the index by account has the order, whatever the statistics say.
        WHERE (account_id, event_id) > (account, above) AND account_id <= account AND NOT positioned
        ORDER BY account_id, event_id LIMIT size
      );
      is_full constant boolean := cardinality(looked_at) = size;
    BEGIN
      PERFORM give_event_positions(
        array_agg(o.account_id), array_agg(o.event_id), array_agg(o.type), array_agg(o.mode)
      )
      FROM outbox_rows o
      WHERE o.event_id = ANY(looked_at || wanted) AND o.account_id = account AND NOT EXISTS (
        SELECT FROM event_positions p WHERE p.event_id = o.event_id
      )
      HAVING count(*) > 0;
      IF NOT is_full THEN
        RETURN NULL;
      END IF;
      -- Those a fan-out has in hand are left alone: they will be gone.
      UPDATE outbox_rows SET positioned = true WHERE event_id IN (
        SELECT event_id FROM outbox_rows WHERE event_id = ANY(looked_at) FOR UPDATE SKIP LOCKED
      );
      RETURN looked_at[size];
    END $$;
  `)
    .execute(db)
}
