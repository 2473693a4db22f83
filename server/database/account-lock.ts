import type { Trx } from './connection.ts'

/**
 * Locks an account until the transaction ends: others that lock it wait until then. For limits of an account: count in a
 * statement after this one, then insert. Rows that refer to the account can be inserted meanwhile.
 */
export async function lockAccount(trx: Trx, accountId: string): Promise<void> {
  await trx.selectFrom('accounts').select('id').where('id', '=', accountId).forNoKeyUpdate().execute()
}
