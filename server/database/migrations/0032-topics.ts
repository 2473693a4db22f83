import { type Kysely, sql } from 'kysely'

/** Topics, the choice of each person about a topic, and the look of the page where people choose. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE topics (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      id text COLLATE "C" NOT NULL,
      name text NOT NULL,
      description text,
      -- Whether people get it who chose nothing.
      default_choice text NOT NULL CHECK (default_choice IN ('opt_in', 'opt_out')),
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      -- Not null: it is deleted, and its choices are being taken away.
      deleted_at timestamptz(3),
      PRIMARY KEY (account_id, id)
    );
    CREATE INDEX topics_deleted ON topics (account_id, id) WHERE deleted_at IS NOT NULL;

    -- No reference to subscribers: the choices of a person are deleted with them, under the lock of the person.
    CREATE TABLE topic_choices (
      account_id text COLLATE "C" NOT NULL,
      subscriber_id text COLLATE "C" NOT NULL,
      topic_id text COLLATE "C" NOT NULL,
      subscribed boolean NOT NULL,
      changed_at timestamptz(3) NOT NULL,
      PRIMARY KEY (account_id, subscriber_id, topic_id),
      FOREIGN KEY (account_id, topic_id) REFERENCES topics ON DELETE CASCADE
    );
    CREATE INDEX topic_choices_by_topic ON topic_choices (account_id, topic_id, subscriber_id);

    CREATE TABLE account_brands (
      account_id text COLLATE "C" PRIMARY KEY REFERENCES accounts ON DELETE CASCADE,
      name text,
      accent_color text CHECK (accent_color ~ '^#[0-9a-fA-F]{6}$'),
      text text,
      updated_at timestamptz(3) NOT NULL
    );

    -- No reference: the topic may be deleted. Its emails then go to nobody.
    ALTER TABLE emails ADD COLUMN topic_id text COLLATE "C";
    ALTER TABLE campaigns ADD COLUMN topic_id text COLLATE "C";
  `)
    .execute(db)
}
