import type { Handle, Trx } from '../database/connection.ts'
import { findAudience } from './queries.ts'

/** Returns true when an account has an audience, for other rooms. */
export async function isAudience(handle: Handle, accountId: string, id: string): Promise<boolean> {
  return (await findAudience(handle, accountId, id)) !== undefined
}

/** As `isAudience`; an audience that is there is not deleted before the transaction ends. */
export async function holdAudience(trx: Trx, accountId: string, id: string): Promise<boolean> {
  const row = await trx
    .selectFrom('audiences')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .forKeyShare()
    .executeTakeFirst()
  return row !== undefined
}
