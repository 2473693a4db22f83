import { type Kysely, sql } from 'kysely'

/** Imports of a ZIP with several CSV files. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(`
    -- A ZIP as it was sent, in pieces, until its files are unpacked into import_chunks.
    CREATE TABLE import_zip_chunks (
      account_id text COLLATE "C" NOT NULL,
      import_id text COLLATE "C" NOT NULL,
      -- Of its first byte in the ZIP.
      position bigint NOT NULL,
      bytes bytea NOT NULL,
      PRIMARY KEY (account_id, import_id, position),
      FOREIGN KEY (account_id, import_id) REFERENCES imports ON DELETE CASCADE
    );
    -- It is compressed already.
    ALTER TABLE import_zip_chunks ALTER COLUMN bytes SET STORAGE EXTERNAL;

    ALTER TABLE imports
      -- The files of a ZIP in the order in which they are read, then those that are not. Null: it is one CSV file.
      ADD COLUMN files jsonb,
      -- Rows that are done of the file that has the byte before position.
      ADD COLUMN file_rows_read bigint NOT NULL DEFAULT 0;

    ALTER TABLE import_failures
      -- The place of its file in files, and its number in that file. Null: it is one CSV file.
      ADD COLUMN file integer,
      ADD COLUMN file_row bigint;
  `)
    .execute(db)
}
