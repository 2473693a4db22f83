import type { Mode } from '../../contract/mode.ts'
import type { Handle } from '../database/connection.ts'

/** A message as it is shown in a browser. */
export type WebMessage = {
  mode: Mode
  campaignId: string | null
  subject: string
  html: string | null
  text: string | null
}

/** Returns the message of an email with its content. Undefined: it was deleted. */
export async function findWebMessage(
  handle: Handle,
  { accountId, emailId }: { accountId: string; emailId: string },
): Promise<WebMessage | undefined> {
  return handle
    .selectFrom('emails as e')
    .innerJoin('email_contents as c', 'c.email_id', 'e.id')
    .select(['e.mode', 'e.campaign_id as campaignId', 'e.subject', 'c.html', 'c.text'])
    .where('e.account_id', '=', accountId)
    .where('e.id', '=', emailId)
    .executeTakeFirst()
}
