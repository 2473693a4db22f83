import type { Db } from '../database/connection.ts'
import type { Scope } from '../shared/scope.ts'
import type { NotifiedEmail } from './notification-facts.ts'

/** Finds an email with the fields that match notifications to its recipients. Undefined: it was deleted. */
export async function findNotifiedEmail(db: Db, id: string): Promise<(NotifiedEmail & Scope) | undefined> {
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

/** Returns whether `host` is the return path of a sending domain. */
export async function isReturnPathHost(db: Db, host: string): Promise<boolean> {
  const row = await db.selectFrom('domains').select('id').where('return_path', '=', host).limit(1).executeTakeFirst()
  return row !== undefined
}
