import { sql } from 'kysely'
import type { Db, Handle } from '../database/connection.ts'
import { subjectKey } from '../message/subject-key.ts'

/*
 * Emails from before a table that lists find emails by. In the background they are added to it, the newest first. A row
 * of `settings` says below which id they are still to be added; without it, all are there.
 */

type Part = {
  /** The name of the row of `settings`. */
  marker: 'email_subjects_below' | 'email_tags_below'
  /** Emails that one statement adds. */
  chunkSize: number
  add(db: Db, emails: readonly OlderEmail[]): Promise<void>
}

type OlderEmail = { id: string; account_id: string; mode: string; subject: string; tags: string[] }

const parts: readonly Part[] = [
  { marker: 'email_subjects_below', chunkSize: 2_000, add: addSubjects },
  // Emails with tags are locked meanwhile, also those that are being sent.
  { marker: 'email_tags_below', chunkSize: 500, add: addTags },
]

/** Emails that one call adds to each table: about a minute. */
const emailsAtOnce = 100_000

/**
 * Adds older emails, up to 100,000 in one call to each table. Returns the number of emails; 0 when all are there. Two
 * calls at once add each once.
 */
export async function indexOlderEmails(db: Db): Promise<number> {
  let added = 0
  for (const part of parts) {
    for (let left = emailsAtOnce; left > 0; left -= part.chunkSize) {
      const count = await addChunk(db, part)
      added += count
      if (count < part.chunkSize) break
    }
  }
  return added
}

/** Returns whether the tags of all emails are in `email_tags`. */
export async function hasAllTags(handle: Handle): Promise<boolean> {
  return (await markerOf(handle, 'email_tags_below')) === undefined
}

async function markerOf(handle: Handle, marker: Part['marker']): Promise<string | undefined> {
  const row = await handle.selectFrom('settings').select('value').where('name', '=', marker).executeTakeFirst()
  return row?.value
}

async function addChunk(db: Db, { marker, chunkSize, add }: Part): Promise<number> {
  const below = await markerOf(db, marker)
  if (below === undefined) return 0
  const { rows } = await sql<OlderEmail>`
    SELECT id, account_id, mode, left(subject, 400) AS subject, tags FROM emails
    WHERE id < ${below} COLLATE "C" ORDER BY id DESC LIMIT ${chunkSize}
  `.execute(db)
  await add(db, rows)
  const last = rows.at(-1)
  if (last === undefined || rows.length < chunkSize) {
    await db.deleteFrom('settings').where('name', '=', marker).execute()
  } else {
    await db.updateTable('settings').set({ value: last.id }).where('name', '=', marker).execute()
  }
  return rows.length
}

async function addSubjects(db: Db, emails: readonly OlderEmail[]): Promise<void> {
  const keyed = emails.map((email) => ({ ...email, key: subjectKey(email.subject) })).filter(({ key }) => key !== '')
  await sql`
    INSERT INTO email_subjects (account_id, mode, subject_key, email_id)
    SELECT * FROM unnest(${keyed.map((email) => email.account_id)}::text[],
      ${keyed.map((email) => email.mode)}::text[], ${keyed.map((email) => email.key)}::text[],
      ${keyed.map((email) => email.id)}::text[])
    ON CONFLICT DO NOTHING
  `.execute(db)
}

async function addTags(db: Db, emails: readonly OlderEmail[]): Promise<void> {
  await sql`
    INSERT INTO email_tags (account_id, mode, tag, email_id)
    SELECT account_id, mode, tag, id FROM (
      SELECT account_id, mode, id, tags FROM emails
      WHERE id = ANY(${emails.flatMap(({ id, tags }) => (tags.length > 0 ? [id] : []))}::text[])
      -- An email that is deleted meanwhile leaves no row: it is locked, or not found. In the order in which all lock.
      ORDER BY id FOR KEY SHARE
    ) e, unnest(tags) AS t (tag)
    ON CONFLICT DO NOTHING
  `.execute(db)
}
