import { type ExpressionBuilder, type Selectable, sql } from 'kysely'
import type { EmailListQuery } from '../../contract/emails.ts'
import type { Mode } from '../../contract/mode.ts'
import { sliceBytes } from '../database/bytea-slices.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import type { Database } from '../database/schema.ts'
import type {
  EmailAttachmentsTable,
  EmailContentsTable,
  EmailRecipientsTable,
  EmailTimelineTable,
} from '../database/tables/emails.ts'
import { firstIdAt, idAboveThoseBefore } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { pairsOf } from './metadata.ts'

const emailColumns = [
  'id',
  'mode',
  'status',
  'sender',
  'subject',
  'message_id',
  'tags',
  'metadata',
  'campaign_id',
  'audience_id',
  'topic_id',
  'track_opens',
  'track_clicks',
  'scheduled_at',
  'created_at',
  'updated_at',
  'completed_at',
] as const

function emailsOf(handle: Handle, { accountId, mode }: Scope) {
  return handle.selectFrom('emails').select(emailColumns).where('account_id', '=', accountId).where('mode', '=', mode)
}

/** Returns emails, newest first. */
export async function selectEmails(
  handle: Handle,
  scope: Scope,
  { query, recipientKey, before, among, limit }: EmailPage,
) {
  const { status, tag, campaign, domain, since, until, metadata = {} } = query
  let emails = emailsOf(handle, scope)
  if (among !== undefined) {
    const lowest = among.reduce((least, id) => (id < least ? id : least), '~')
    // The second condition bounds a walk along the list, if the planner takes one.
    emails = emails.where('id', '=', sql<string>`ANY(${among}::text[])`).where('id', '>=', lowest)
  }
  if (domain !== undefined) emails = emails.where('domain_id', '=', domain)
  if (before !== undefined) emails = emails.where('id', '<', before)
  if (status !== undefined) emails = emails.where('status', '=', status)
  if (campaign !== undefined) emails = emails.where('campaign_id', '=', campaign)
  if (tag !== undefined) emails = emails.where(sql<boolean>`tags @> ${[tag]}::text[]`)
  for (const pair of pairsOf(metadata)) emails = emails.where(hasPair(scope.accountId, pair))
  if (recipientKey !== undefined) emails = emails.where(isTo(scope.accountId, recipientKey))
  if (since !== undefined) emails = emails.where(createdSince(new Date(since)))
  if (until !== undefined) emails = emails.where(createdBefore(new Date(until)))
  return emails.orderBy('id', 'desc').limit(limit).execute()
}

export type EmailPage = {
  query: EmailListQuery
  /** Made by `addressKey`. */
  recipientKey: string | undefined
  /** The id of the last email of the page before. */
  before: string | undefined
  /** The only emails that may be on the page. Default: all. */
  among?: readonly string[] | undefined
  limit: number
}

export type EmailRow = Awaited<ReturnType<typeof selectEmails>>[number]

type Emails = ExpressionBuilder<Database, 'emails'>

// OFFSET 0 makes the planner look up each email, whatever the statistics say.
function isTo(accountId: string, recipientKey: string) {
  return sql<boolean>`EXISTS (SELECT FROM email_recipients
    WHERE account_id = ${accountId} AND address_key = ${recipientKey} AND email_id = emails.id OFFSET 0)`
}

function hasPair(accountId: string, pair: string) {
  return sql<boolean>`EXISTS (SELECT FROM email_metadata
    WHERE account_id = ${accountId} AND pair = ${pair} AND email_id = emails.id OFFSET 0)`
}

/** The bounds on the id limit the range of the index scan. */
function createdSince(at: Date) {
  return (eb: Emails) => eb.and([eb('id', '>=', firstIdAt('email', at)), eb('created_at', '>=', at)])
}

function createdBefore(at: Date) {
  return (eb: Emails) => eb.and([eb('id', '<', idAboveThoseBefore('email', at)), eb('created_at', '<', at)])
}

const selectEmail = prepare<{ accountId: string; mode: Mode; id: string }, EmailRow>({ name: 'find_email' })`
  SELECT ${{ sql: emailColumns.join(', ') }} FROM emails
  WHERE account_id = ${'accountId'} AND mode = ${'mode'} AND id = ${'id'}
`

export async function findEmail(handle: Handle, { accountId, mode }: Scope, id: string): Promise<EmailRow | undefined> {
  const [row] = await selectEmail(handle, { accountId, mode, id })
  return row
}

/** Locks an email for a change, so that no worker starts to send it. */
export async function lockEmail(trx: Trx, scope: Scope, id: string): Promise<EmailRow | undefined> {
  return emailsOf(trx, scope).where('id', '=', id).forUpdate().executeTakeFirst()
}

export type RecipientRow = Pick<
  Selectable<EmailRecipientsTable>,
  'email_id' | 'position' | 'kind' | 'name' | 'address' | 'status' | 'attempt_count' | 'next_attempt_at' | 'reason'
>

const selectRecipientsOf = prepare<{ emailIds: readonly string[] }, RecipientRow>({ name: 'find_email_recipients' })`
  SELECT email_id, position, kind, name, address, status, attempt_count, next_attempt_at, reason FROM email_recipients
  WHERE email_id = ANY(${'emailIds'}::text[]) ORDER BY email_id, position
`

/** Returns the recipients of several emails, ordered by email and position. */
export async function selectRecipients(handle: Handle, emailIds: readonly string[]): Promise<RecipientRow[]> {
  return selectRecipientsOf(handle, { emailIds })
}

export type ContentRow = Selectable<EmailContentsTable>

const selectContent = prepare<{ emailId: string }, ContentRow>({ name: 'find_email_content' })`
  SELECT email_id, reply_to, headers, html, text FROM email_contents WHERE email_id = ${'emailId'}
`

export async function findContent(handle: Handle, emailId: string): Promise<ContentRow | undefined> {
  const [row] = await selectContent(handle, { emailId })
  return row
}

/**
 * Returns large content. Reads text and HTML with separate queries, because each result is received in one turn of the
 * event loop.
 */
export async function findLargeContent(handle: Handle, emailId: string) {
  const contents = handle.selectFrom('email_contents').where('email_id', '=', emailId)
  const text = await contents.select('text').executeTakeFirst()
  const rest = await contents.select(['email_id', 'reply_to', 'headers', 'html']).executeTakeFirst()
  return text === undefined || rest === undefined ? undefined : { ...rest, ...text }
}

/** Returns what the content has besides HTML and text. */
export async function findHead(handle: Handle, emailId: string) {
  return handle
    .selectFrom('email_contents')
    .select(['reply_to', 'headers'])
    .where('email_id', '=', emailId)
    .executeTakeFirst()
}

const selectSize = prepare<{ emailId: string }, { size: number }>({ name: 'size_of_email_content' })`
  SELECT coalesce(octet_length(html), 0) + coalesce(octet_length(text), 0) AS size
  FROM email_contents WHERE email_id = ${'emailId'}
`

/** Returns the bytes of HTML and text of an email; 0 when they were deleted. */
export async function sizeOfContent(handle: Handle, emailId: string): Promise<number> {
  const [row] = await selectSize(handle, { emailId })
  return row?.size ?? 0
}

/** An attachment without its content. `size`: bytes. */
export type ListedAttachment = Pick<Selectable<EmailAttachmentsTable>, 'filename' | 'content_type' | 'content_id'> & {
  size: number
}

const selectListed = prepare<{ emailId: string }, ListedAttachment>({ name: 'find_email_attachments' })`
  SELECT filename, content_type, content_id, octet_length(content) AS size FROM email_attachments
  WHERE email_id = ${'emailId'} ORDER BY position
`

/** Returns the attachments of an email without their contents. */
export async function selectAttachments(handle: Handle, emailId: string): Promise<ListedAttachment[]> {
  return selectListed(handle, { emailId })
}

type AttachmentRow = {
  filename: string
  contentType: string
  contentId: string | null
  /** Bytes. */
  size: number
}

/** Finds the attachment at a position of an email, without its content. */
export async function findAttachment(
  handle: Handle,
  { accountId, mode }: Scope,
  { emailId, position }: AttachmentKey,
): Promise<AttachmentRow | undefined> {
  const { rows } = await sql<AttachmentRow>`
    SELECT a.filename, a.content_type AS "contentType", a.content_id AS "contentId", octet_length(a.content) AS size
    FROM email_attachments a JOIN emails e ON e.id = a.email_id
    WHERE e.account_id = ${accountId} AND e.mode = ${mode} AND e.id = ${emailId} AND a.position = ${position}
  `.execute(handle)
  return rows[0]
}

export type AttachmentKey = { emailId: string; position: number }

/** Yields the content of an attachment of `size` bytes in slices. Throws when it is deleted meanwhile. */
export async function* readAttachment(
  handle: Handle,
  { emailId, position, size }: AttachmentKey & { size: number },
): AsyncGenerator<Buffer> {
  for (let from = 0; from < size; ) {
    const { rows } = await sql<{ slice: Buffer }>`
      SELECT substring(content FROM ${sql.lit(from + 1)} FOR ${sql.lit(sliceBytes)}) AS slice
      FROM email_attachments WHERE email_id = ${emailId} AND position = ${position}
    `.execute(handle)
    const slice = rows[0]?.slice
    if (slice === undefined) throw new Error(`the attachment ${position} of ${emailId} was deleted while it was read`)
    yield slice
    from += slice.length
  }
}

/** Finds an email and keeps it from being deleted until the transaction ends. */
export async function findKeptEmail(trx: Trx, scope: Scope, id: string): Promise<EmailRow | undefined> {
  return emailsOf(trx, scope).where('id', '=', id).forKeyShare().executeTakeFirst()
}

/** Copies HTML, text and attachments from one email to another, which has none. They stay inside the database. */
export async function copyContent(trx: Trx, { from, to }: { from: string; to: string }): Promise<void> {
  await sql`
    WITH files AS (
      INSERT INTO email_attachments (email_id, position, filename, content_type, content_id, content)
      SELECT ${to}, position, filename, content_type, content_id, content
      FROM email_attachments WHERE email_id = ${from}
    )
    UPDATE email_contents copy SET html = original.html, text = original.text
    FROM email_contents original WHERE original.email_id = ${from} AND copy.email_id = ${to}
  `.execute(trx)
}

export type TimelineRow = Pick<Selectable<EmailTimelineTable>, 'position' | 'at' | 'type' | 'detail' | 'reply' | 'host'>

const selectTimelineOf = prepare<{ emailId: string }, TimelineRow>({ name: 'find_email_timeline' })`
  SELECT position, at, type, detail, reply, host FROM email_timeline WHERE email_id = ${'emailId'} ORDER BY id
`

/** Returns the timeline of an email, oldest entry first. */
export async function selectTimeline(handle: Handle, emailId: string): Promise<TimelineRow[]> {
  return selectTimelineOf(handle, { emailId })
}

/** Moves a locked email that has not been started to another time. */
export async function moveEmail(trx: Trx, id: string, { to, at }: { to: Date; at: Date }): Promise<EmailRow> {
  await sql`
    WITH history AS (
      INSERT INTO email_timeline (email_id, at, type, detail)
      VALUES (${id}, ${at}, 'rescheduled', ${`For ${to.toISOString()}.`})
    )
    UPDATE email_recipients SET next_attempt_at = ${to} WHERE email_id = ${id} AND status = 'queued'
  `.execute(trx)
  return trx
    .updateTable('emails')
    .set({ scheduled_at: to, updated_at: at })
    .where('id', '=', id)
    .returning(emailColumns)
    .executeTakeFirstOrThrow()
}

/** Cancels a locked email that has not been started. */
export async function cancelEmail(trx: Trx, id: string, at: Date): Promise<EmailRow> {
  await sql`
    WITH history AS (
      INSERT INTO email_timeline (email_id, at, type) VALUES (${id}, ${at}, 'canceled')
    )
    UPDATE email_recipients SET status = 'canceled', next_attempt_at = NULL WHERE email_id = ${id} AND status = 'queued'
  `.execute(trx)
  return trx
    .updateTable('emails')
    .set({ status: 'canceled', updated_at: at, completed_at: at })
    .where('id', '=', id)
    .returning(emailColumns)
    .executeTakeFirstOrThrow()
}
