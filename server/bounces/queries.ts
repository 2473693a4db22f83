import type { Db } from '../database/connection.ts'
import type { Scope } from '../shared/scope.ts'
import type { NotifiedEmail } from './outcomes.ts'

/** An email with what its notifications are compared with. Undefined: it is gone. */
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

/** Whether notifications about the emails of some domain come back to `host`. */
export async function isReturnPathHost(db: Db, host: string): Promise<boolean> {
  const row = await db.selectFrom('domains').select('id').where('return_path', '=', host).limit(1).executeTakeFirst()
  return row !== undefined
}
