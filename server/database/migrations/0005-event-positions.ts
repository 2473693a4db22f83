import { type Kysely, sql } from 'kysely'

/**
 * A position for each event, in the order in which an account's events became visible: what polling goes by.
 *
 * An event gets its position when it leaves the outbox, whatever process takes it out, or before, when a poller
 * asks. The counter of the account is locked until that commits, so a later position always commits later.
 *
 * Nothing here reads or rewrites a large table: the events that left the outbox before have no position and come
 * first, in the order of their ids. The outbox is locked for the time it takes to build an index of what waits in it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- Ends what processes of an older version have begun: what they take out from now on gets a position.
    LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE;

    -- The last of the events without a position. No row: there are none.
    INSERT INTO settings (name, value)
    SELECT 'last_event_without_position', id FROM events ORDER BY id DESC LIMIT 1;

    CREATE TABLE event_counters (
      account_id text COLLATE "C" PRIMARY KEY,
      last_position bigint NOT NULL,
      -- See event_positions.
      reached text COLLATE "C" NOT NULL,
      -- That of before the positions that were given last.
      reached_before text COLLATE "C" NOT NULL DEFAULT ''
    ) WITH (fillfactor = 50);

    CREATE TABLE event_positions (
      account_id text COLLATE "C" NOT NULL,
      -- As those of the event, so that each key's events are found without a walk over others.
      mode text NOT NULL,
      type text NOT NULL,
      position bigint NOT NULL,
      event_id text COLLATE "C" NOT NULL UNIQUE,
      -- No event up to this position has an id of a later millisecond: the ten characters of an id that tell its
      -- time. It never decreases from one position to the next.
      reached text COLLATE "C" NOT NULL,
      PRIMARY KEY (account_id, mode, position)
    );
    CREATE INDEX event_positions_by_type ON event_positions (type, account_id, mode, position);

    -- Set by pollers that look through a long backlog, so that they pass over each event once.
    ALTER TABLE outbox ADD COLUMN positioned boolean NOT NULL DEFAULT false;
    CREATE INDEX outbox_by_account ON outbox (account_id, event_id) WHERE NOT positioned;

    -- Gives positions to events of one or more accounts. Those that have one keep it, which leaves a gap.
    CREATE FUNCTION give_event_positions(accounts text[], ids text[], types text[], modes text[])
    RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
      -- Locks the counters until the commit, in one order for all, so that no deadlock arises.
      INSERT INTO event_counters AS c (account_id, last_position, reached)
      SELECT account_id, count(*), max(substr(id, 5, 10) COLLATE "C")
      FROM unnest(accounts, ids) AS e (account_id, id)
      GROUP BY account_id ORDER BY account_id COLLATE "C"
      ON CONFLICT (account_id) DO UPDATE SET
        last_position = c.last_position + excluded.last_position,
        reached = greatest(c.reached, excluded.reached),
        reached_before = c.reached;
      -- Another statement, which sees what the holders of the counters before have committed. So nobody else gives a
      -- position to one of these events meanwhile, and ON CONFLICT, which is dearer, has nothing to do.
      INSERT INTO event_positions (account_id, mode, type, position, event_id, reached)
      SELECT e.account_id, e.mode, e.type, c.last_position - e.count + e.number, e.id,
        greatest(c.reached_before, substr(e.id, 5, 10) COLLATE "C")
      FROM (
        SELECT account_id, id, type, mode, count(*) OVER (PARTITION BY account_id) AS count,
          row_number() OVER (PARTITION BY account_id ORDER BY id COLLATE "C") AS number
        FROM unnest(accounts, ids, types, modes) AS e (account_id, id, type, mode)
      ) e
      -- One by one along the key, whatever the statistics say.
      CROSS JOIN LATERAL (
        SELECT last_position, reached_before FROM event_counters WHERE account_id = e.account_id OFFSET 0
      ) c
      WHERE NOT EXISTS (SELECT FROM event_positions WHERE event_id = e.id OFFSET 0);
    END $$;

    CREATE FUNCTION give_positions_on_leaving_outbox() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM give_event_positions(array_agg(account_id), array_agg(event_id), array_agg(type), array_agg(mode))
      FROM gone HAVING count(*) > 0;
      RETURN NULL;
    END $$;
    CREATE TRIGGER give_positions AFTER DELETE ON outbox
      REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION give_positions_on_leaving_outbox();

    -- Gives positions to the first events of an account in the outbox with an id above the given one, and to the
    -- wanted one if it is there. Returns the last id looked at when there may be more, else null. To be called as a
    -- statement of its own, outside a transaction. Waits a second at most for another that gives positions.
    CREATE FUNCTION give_positions_in_outbox(account text, above text, wanted text) RETURNS text
    LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
    DECLARE
      size constant integer := 1000;
      looked_at text[] := ARRAY(
        SELECT event_id FROM outbox
        -- In these words only the index by account has the order, whatever the statistics say.
        WHERE (account_id, event_id) > (account, above) AND account_id <= account AND NOT positioned
        ORDER BY account_id, event_id LIMIT size
      );
      is_full constant boolean := cardinality(looked_at) = size;
    BEGIN
      PERFORM give_event_positions(
        array_agg(o.account_id), array_agg(o.event_id), array_agg(o.type), array_agg(o.mode)
      )
      FROM outbox o
      WHERE o.event_id = ANY(looked_at || wanted) AND o.account_id = account AND NOT EXISTS (
        SELECT FROM event_positions p WHERE p.event_id = o.event_id
      )
      HAVING count(*) > 0;
      IF NOT is_full THEN
        RETURN NULL;
      END IF;
      -- Those a fan-out has in hand are left alone: they will be gone.
      UPDATE outbox SET positioned = true WHERE event_id IN (
        SELECT event_id FROM outbox WHERE event_id = ANY(looked_at) FOR UPDATE SKIP LOCKED
      );
      RETURN looked_at[size];
    END $$;

    -- The position after which all events of an account with an id from the given one on stand, by binary search.
    CREATE FUNCTION event_position_before(account text, first_id text) RETURNS bigint LANGUAGE plpgsql STABLE
    -- The next position is read from the index, not sorted out of all that follow, whatever the statistics say.
    SET enable_sort = off AS $$
    DECLARE
      bound constant text := substr(first_id, 5, 10);
      low bigint := 0;
      high bigint := (SELECT last_position FROM event_counters WHERE account_id = account);
      middle bigint;
      next record;
    BEGIN
      -- Up to low, all are of before; after high, none is.
      WHILE low < high LOOP
        middle := (low + high) / 2;
        SELECT position, reached INTO next
        FROM unnest(ARRAY['test', 'live']) AS m (mode)
        CROSS JOIN LATERAL (
          SELECT position, reached FROM event_positions
          WHERE (account_id, mode, position) > (account, m.mode, middle)
            AND (account_id, mode, position) <= (account, m.mode, high)
          ORDER BY account_id, mode, position LIMIT 1
        ) p
        ORDER BY position LIMIT 1;
        IF FOUND AND next.reached < bound COLLATE "C" THEN
          low := next.position;
        ELSE
          high := middle;
        END IF;
      END LOOP;
      RETURN low;
    END $$;
  `)
    .execute(db)
}
