import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Db } from '../database/connection.ts'
import { newId } from '../shared/ids.ts'
import type { ReceivedMessage } from '../smtp-listener/listener.ts'
import { deleteOlderMessages } from './queries.ts'

/** An inbound message to keep. Without an account, only the operator can see it. */
export type KeptMessage = {
  accountId: string | null
  /** The mode of its email; `live` without an email. */
  mode: Mode
  emailId: string | null
  reason: string
  message: ReceivedMessage
  at: Date
}

/** Stores a message for a person to read, cut to `maxBytes`. */
export async function insertInbound(db: Db, kept: KeptMessage, maxBytes: number): Promise<void> {
  const { accountId, mode, emailId, reason, message, at } = kept
  await db
    .insertInto('inbound_messages')
    .values({
      id: newId('inboundMessage', at),
      account_id: accountId,
      mode,
      email_id: emailId,
      mail_from: message.mailFrom,
      recipients: sql`${message.recipients}::text[]`,
      reason,
      content: message.content.subarray(0, maxBytes),
      created_at: at,
    })
    .execute()
}

/** Deletes all but the newest `keep` messages of an account; null: those without an account. Returns the number. */
export function deleteOlderInbound(db: Db, accountId: string | null, keep: number): Promise<number> {
  return deleteOlderMessages(db, 'inbound_messages', accountId, keep)
}
