import { type Kysely, sql } from 'kysely'

/**
 * Why a delivery was late. Deliveries keep when their latest attempt was due and when it was claimed; processes tell in
 * `flow_states` what the flows wait for that have work, and in `webhook_outcomes` what came of attempts.
 *
 * The columns are null by default: no row is written. No table refers to another, so that what is told of a webhook
 * never waits for somebody who deletes it: what is left behind is deleted with its age.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    ALTER TABLE deliveries ADD COLUMN queued_at timestamptz(3), ADD COLUMN claimed_at timestamptz(3);

    -- Of the last seconds only: after a crash of PostgreSQL it is empty, and soon told anew.
    CREATE UNLOGGED TABLE flow_states (
      flow integer NOT NULL,
      process uuid NOT NULL,
      max_in_flight integer NOT NULL,
      in_flight integer NOT NULL,
      waits_for text,
      updated_at timestamptz NOT NULL,
      PRIMARY KEY (flow, process)
    ) WITH (fillfactor = 50);

    CREATE TABLE webhook_outcomes (
      webhook_id text COLLATE "C" NOT NULL,
      -- The five minutes from then on.
      bucket timestamptz NOT NULL,
      succeeded integer NOT NULL,
      failed integer NOT NULL,
      duration_ms bigint NOT NULL,
      max_duration_ms integer NOT NULL,
      PRIMARY KEY (webhook_id, bucket)
    ) WITH (fillfactor = 50);
    CREATE INDEX webhook_outcomes_by_bucket ON webhook_outcomes (bucket);
  `)
    .execute(db)
}
