import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Db } from '../database/connection.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import type { ReceivedMessage } from '../smtp-listener/listener.ts'
import type { NotifiedEmail } from './outcomes.ts'

/** An email with what its notifications are compared with. Undefined: it is gone. */
export async function findEmail(db: Db, id: string): Promise<(NotifiedEmail & Scope) | undefined> {
  const rows = await db
    .selectFrom('emails')
    .innerJoin('email_recipients', 'email_recipients.email_id', 'emails.id')
    .select([
      'emails.account_id as accountId',
      'emails.mode',
      'email_recipients.position',
      'email_recipients.address_key as addressKey',
    ])
    .where('emails.id', '=', id)
    .orderBy('email_recipients.position')
    .execute()
  const [first] = rows
  return first === undefined ? undefined : { id, accountId: first.accountId, mode: first.mode, recipients: rows }
}

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

/** Whether notifications about the emails of some domain come back to `host`. */
export async function isReturnPathHost(db: Db, host: string): Promise<boolean> {
  const row = await db.selectFrom('domains').select('id').where('return_path', '=', host).limit(1).executeTakeFirst()
  return row !== undefined
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
