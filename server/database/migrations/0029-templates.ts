import { type Kysely, sql } from 'kysely'

/**
 * Templates, which both modes share. A template holds its draft; what was published stays in `template_versions` and
 * never changes.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    CREATE TABLE templates (
      account_id text COLLATE "C" NOT NULL REFERENCES accounts ON DELETE CASCADE,
      id text COLLATE "C" NOT NULL,
      name text NOT NULL,
      subject text NOT NULL,
      preheader text,
      html text,
      text text,
      -- A list of what the API calls TemplateVariable.
      variables jsonb NOT NULL,
      -- Counts the changes of the draft.
      revision integer NOT NULL,
      -- The revision that was published last, and as which version. Null: none.
      published_revision integer,
      published_version integer,
      published_at timestamptz(3),
      created_at timestamptz(3) NOT NULL,
      updated_at timestamptz(3) NOT NULL,
      PRIMARY KEY (account_id, id),
      CHECK ((published_version IS NULL) = (published_revision IS NULL)),
      CHECK ((published_version IS NULL) = (published_at IS NULL))
    );

    CREATE TABLE template_versions (
      account_id text COLLATE "C" NOT NULL,
      template_id text COLLATE "C" NOT NULL,
      version integer NOT NULL,
      subject text NOT NULL,
      preheader text,
      html text,
      text text,
      variables jsonb NOT NULL,
      published_at timestamptz(3) NOT NULL,
      PRIMARY KEY (account_id, template_id, version),
      FOREIGN KEY (account_id, template_id) REFERENCES templates ON DELETE CASCADE
    );
  `)
    .execute(db)
}
