import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Db } from '../database/connection.ts'
import { newId } from '../shared/ids.ts'
import type { ReceivedMessage } from '../smtp-listener/listener.ts'
import { deleteOlderMessages } from './queries.ts'

/** Without an account: for the operator to see. */
export type KeptMessage = {
  accountId: string | null
  /** That of its email; live where it is of none. */
  mode: Mode
  emailId: string | null
  reason: string
  message: ReceivedMessage
  at: Date
}

/** Keeps a message for a person to see, but for what is beyond `maxBytes`. */
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

/** Deletes all but the newest `keep` messages of an account; null: those of no account. Returns how many. */
export function deleteOlderInbound(db: Db, accountId: string | null, keep: number): Promise<number> {
  return deleteOlderMessages(db, 'inbound_messages', accountId, keep)
}
