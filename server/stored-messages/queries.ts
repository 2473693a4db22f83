import { type RawBuilder, sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import { readWhole, sliceBytes } from '../database/bytea-slices.ts'
import type { Handle } from '../database/connection.ts'
import type { Scope } from '../shared/scope.ts'
import { headBytes } from './parse.ts'

/** The tables of stored messages. */
export type MessageTable = 'captured_messages' | 'inbound_messages'

export type MessageRow = {
  id: string
  mode: Mode
  emailId: string | null
  mailFrom: string
  recipients: string[]
  size: number
  createdAt: Date
  /** The reason why an inbound message was kept; null for captured messages, which are all kept. */
  reason: string | null
  /** The beginning of the message, or all of it. */
  content: Buffer
}

/**
 * Returns a page of messages, newest first, with the beginning of each.
 *
 * @param page.after The id of the last message of the previous page.
 */
export async function selectMessages(
  handle: Handle,
  table: MessageTable,
  { accountId, mode }: Scope,
  page: { emailId?: string | undefined; after?: string | undefined; limit: number },
): Promise<MessageRow[]> {
  const { rows } = await sql<MessageRow>`
    SELECT ${columns(table, sql`substring(content FOR ${sql.lit(headBytes)})`)} FROM ${sql.table(table)}
    WHERE account_id = ${accountId} AND mode = ${mode}
      AND (${page.emailId ?? null}::text IS NULL OR email_id = ${page.emailId ?? null})
      AND (${page.after ?? null}::text IS NULL OR id < ${page.after ?? null})
    ORDER BY id DESC LIMIT ${page.limit}
  `.execute(handle)
  return rows
}

/** The content of messages above this size is read later and in slices. Bytes. */
export const largeMessage = 262_144

/** Finds a message. The content of a large one is empty: see `readRest`. */
export async function findMessage(
  handle: Handle,
  table: MessageTable,
  { accountId, mode }: Scope,
  id: string,
): Promise<MessageRow | undefined> {
  const { rows } = await sql<MessageRow>`
    SELECT ${columns(table, sql`CASE WHEN octet_length(content) <= ${sql.lit(largeMessage)} THEN content ELSE '' END`)} FROM ${sql.table(table)}
    WHERE account_id = ${accountId} AND mode = ${mode} AND id = ${id}
  `.execute(handle)
  return rows[0]
}

/** Reads the whole content of a message in slices, to bound the memory of PostgreSQL. Undefined: it was deleted. */
export function readRest(handle: Handle, table: MessageTable, found: MessageRow): Promise<Buffer | undefined> {
  const { id, size, content: first } = found
  return readWhole(first, size, (from) => readSlice(handle, table, { id, from }))
}

/** Yields the content of a message in slices. Throws when the message is deleted meanwhile. */
export async function* readSlices(
  handle: Handle,
  table: MessageTable,
  { id, size }: Pick<MessageRow, 'id' | 'size'>,
): AsyncGenerator<Buffer> {
  for (let from = 0; from < size; ) {
    const slice = await readSlice(handle, table, { id, from })
    if (slice === undefined) throw new Error(`the message ${id} was deleted while it was read`)
    yield slice
    from += slice.length
  }
}

async function readSlice(
  handle: Handle,
  table: MessageTable,
  { id, from }: { id: string; from: number },
): Promise<Buffer | undefined> {
  const { rows } = await sql<{ slice: Buffer }>`
    SELECT substring(content FROM ${sql.lit(from + 1)} FOR ${sql.lit(sliceBytes)}) AS slice
    FROM ${sql.table(table)} WHERE id = ${id}
  `.execute(handle)
  const slice = rows[0]?.slice
  return slice === undefined || slice.length === 0 ? undefined : slice
}

/** Deletes a message. Returns false when there is none. */
export async function deleteMessage(
  handle: Handle,
  table: MessageTable,
  { accountId, mode }: Scope,
  id: string,
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    DELETE FROM ${sql.table(table)} WHERE account_id = ${accountId} AND mode = ${mode} AND id = ${id}
  `.execute(handle)
  return numAffectedRows === 1n
}

/** Deletes all messages of one mode of an account. */
export async function deleteMessages(handle: Handle, table: MessageTable, { accountId, mode }: Scope): Promise<void> {
  await sql`DELETE FROM ${sql.table(table)} WHERE account_id = ${accountId} AND mode = ${mode}`.execute(handle)
}

/** Deletes all but the newest `keep` messages of an account; null: those without an account. Returns the number. */
export async function deleteOlderMessages(
  handle: Handle,
  table: MessageTable,
  accountId: string | null,
  keep: number,
): Promise<number> {
  const whose = accountId === null ? sql`account_id IS NULL` : sql`account_id = ${accountId}`
  const { numAffectedRows } = await sql`
    DELETE FROM ${sql.table(table)} WHERE ${whose} AND id <= (
      SELECT id FROM ${sql.table(table)} WHERE ${whose} ORDER BY id DESC OFFSET ${keep} LIMIT 1
    )
  `.execute(handle)
  return Number(numAffectedRows ?? 0n)
}

function columns(table: MessageTable, content: RawBuilder<unknown>): RawBuilder<unknown> {
  const reason = table === 'inbound_messages' ? sql`reason` : sql`NULL`
  return sql`id, mode, email_id AS "emailId", mail_from AS "mailFrom", recipients, octet_length(content) AS size,
    created_at AS "createdAt", ${reason} AS reason, ${content} AS content`
}
