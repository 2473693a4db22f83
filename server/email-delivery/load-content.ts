import { sql } from 'kysely'
import { readWhole, sliceBytes } from '../database/bytea-slices.ts'
import type { Handle } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import { largeBytes } from '../lib/worker-thread.ts'

/** The content of an email, as the client sent it. */
export type Content = {
  replyTo: readonly string[]
  headers: Readonly<Record<string, string>>
  html: string | null
  text: string | null
  attachments: readonly Attachment[]
}

export type Attachment = { filename: string; contentType: string; contentId: string | null; content: Buffer }

type ContentRow = {
  email_id: string
  reply_to: string[]
  headers: Record<string, string>
  html: string | null
  text: string | null
  has_attachments: boolean
}

type AttachmentRow = { email_id: string; position: number; size: number } & Attachment

/** Reads the contents of emails up to 256 KiB. Larger ones are left out: see `loadContent`. */
export async function loadSmallContents(handle: Handle, emailIds: readonly string[]): Promise<Map<string, Content>> {
  return load(handle, emailIds, largeBytes)
}

/** Returns the size of the content of one email in bytes; 0: the email was deleted. */
export async function sizeOfContent(handle: Handle, emailId: string): Promise<number> {
  const { rows } = await sql<{ bytes: string }>`
    SELECT coalesce(octet_length(c.html), 0) + coalesce(octet_length(c.text), 0) + (
      SELECT coalesce(sum(octet_length(content)), 0) FROM email_attachments WHERE email_id = c.email_id
    ) AS bytes
    FROM email_contents c WHERE c.email_id = ${emailId}
  `.execute(handle)
  return Number(rows[0]?.bytes ?? 0)
}

/** Reads the content of one email of any size; undefined: the email was deleted. */
export async function loadContent(handle: Handle, emailId: string): Promise<Content | undefined> {
  return (await load(handle, [emailId], Number.MAX_SAFE_INTEGER)).get(emailId)
}

async function load(handle: Handle, emailIds: readonly string[], maxBytes: number): Promise<Map<string, Content>> {
  if (emailIds.length === 0) return new Map()
  const statement = sql<ContentRow>`
    SELECT c.email_id, c.reply_to, c.headers, c.html, c.text, a.count > 0 AS has_attachments
    FROM email_contents c, LATERAL (
      SELECT count(*) AS count, coalesce(sum(octet_length(content)), 0) AS bytes
      FROM email_attachments WHERE email_id = c.email_id
    ) a
    WHERE c.email_id = ANY(${emailIds}::text[])
      AND coalesce(octet_length(c.html), 0) + coalesce(octet_length(c.text), 0) + a.bytes <= ${maxBytes}
  `
  const rows = await executePrepared(handle, { name: 'load_contents' }, statement)
  const withAttachments = rows.filter((row) => row.has_attachments).map((row) => row.email_id)
  const attachments = await loadAttachments(handle, withAttachments)
  const contents = new Map<string, Content>()
  for (const { email_id: id, reply_to: replyTo, headers, html, text, has_attachments } of rows) {
    const files = has_attachments ? attachments.get(id) : []
    // Undefined: the email was deleted meanwhile, with its attachments.
    if (files !== undefined) contents.set(id, { replyTo, headers, html, text, attachments: files })
  }
  return contents
}

async function loadAttachments(handle: Handle, emailIds: readonly string[]): Promise<Map<string, Attachment[]>> {
  if (emailIds.length === 0) return new Map()
  const { rows } = await sql<AttachmentRow>`
    SELECT email_id, position, filename, content_type AS "contentType", content_id AS "contentId",
      octet_length(content) AS size, substring(content FOR ${sql.lit(sliceBytes)}) AS content
    FROM email_attachments WHERE email_id = ANY(${emailIds}::text[]) ORDER BY email_id, position
  `.execute(handle)
  const attachments = new Map<string, Attachment[]>(rows.map((row) => [row.email_id, []]))
  for (const { email_id: id, position, size, content: first, ...attachment } of rows) {
    const content = await readWhole(first, size, async (from) => {
      const { rows: slices } = await sql<{ slice: Buffer }>`
        SELECT substring(content FROM ${sql.lit(from + 1)} FOR ${sql.lit(sliceBytes)}) AS slice
        FROM email_attachments WHERE email_id = ${id} AND position = ${position}
      `.execute(handle)
      return slices[0]?.slice
    })
    if (content === undefined) attachments.delete(id)
    else attachments.get(id)?.push({ ...attachment, content })
  }
  return attachments
}
