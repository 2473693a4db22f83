import { sql } from 'kysely'
import type { Db } from '../database/connection.ts'
import { subjectKey } from '../message/subject-key.ts'

/** Emails whose subjects one statement adds. */
const chunkSize = 2_000
/** Statements of one call, which takes about a minute. */
const chunksAtOnce = 100

type Row = { id: string; account_id: string; mode: string; subject: string }

/**
 * Adds the subjects of emails from before there was a search by subject, the newest first, up to 200,000 in one call.
 * Returns the number of emails; 0 when all are there. Two calls at once add each subject once.
 */
export async function indexOlderSubjects(db: Db): Promise<number> {
  let added = 0
  for (let chunk = 0; chunk < chunksAtOnce; chunk++) {
    const count = await indexChunk(db)
    added += count
    if (count < chunkSize) break
  }
  return added
}

async function indexChunk(db: Db): Promise<number> {
  const below = await db
    .selectFrom('settings')
    .select('value')
    .where('name', '=', 'email_subjects_below')
    .executeTakeFirst()
  if (below === undefined) return 0
  const { rows } = await sql<Row>`
    SELECT id, account_id, mode, left(subject, 400) AS subject FROM emails
    WHERE id < ${below.value} COLLATE "C" ORDER BY id DESC LIMIT ${chunkSize}
  `.execute(db)
  await addSubjects(db, rows)
  const last = rows.at(-1)
  if (last === undefined || rows.length < chunkSize) {
    await db.deleteFrom('settings').where('name', '=', 'email_subjects_below').execute()
  } else {
    await db.updateTable('settings').set({ value: last.id }).where('name', '=', 'email_subjects_below').execute()
  }
  return rows.length
}

async function addSubjects(db: Db, rows: readonly Row[]): Promise<void> {
  const keyed = rows.map((row) => ({ ...row, key: subjectKey(row.subject) })).filter(({ key }) => key !== '')
  await sql`
    INSERT INTO email_subjects (account_id, mode, subject_key, email_id)
    SELECT * FROM unnest(${keyed.map((row) => row.account_id)}::text[], ${keyed.map((row) => row.mode)}::text[],
      ${keyed.map((row) => row.key)}::text[], ${keyed.map((row) => row.id)}::text[])
    ON CONFLICT DO NOTHING
  `.execute(db)
}
