import type { Db } from '../../../server/database/connection.ts'
import { newId } from '../../../server/ids.ts'

/** An email of `accountId` as the API stores it, with nothing that the capture does not look at. */
export async function insertEmail(db: Db, accountId: string): Promise<string> {
  const at = new Date()
  const id = newId('email', at)
  await db
    .insertInto('emails')
    .values({
      id,
      account_id: accountId,
      mode: 'live',
      status: 'queued',
      domain_id: null,
      sender: 'Shop <shop@example.com>',
      subject: 'Hello',
      message_id: `<${id}@example.com>`,
      campaign_id: null,
      audience_id: null,
      scheduled_at: null,
      completed_at: null,
      created_at: at,
      updated_at: at,
    })
    .execute()
  return id
}

/** A return path as the tests write it: the identifier of the email stands in it as it is. */
export function returnPathOf(emailId: string): string {
  return `b.${emailId}@send.example.com`
}

/** The email of such a return path. */
export function readReturnPath(address: string): string | null {
  return /^b\.(email_[0-9a-z]{26})@/.exec(address)?.[1] ?? null
}
