import type { Trx } from './connection.ts'

/**
 * Locks an account until the transaction ends. Other transactions that lock it wait until then. Use it for limits of an
 * account: lock, count in a later statement, then insert. Rows that refer to the account can be inserted meanwhile.
 */
export async function lockAccount(trx: Trx, accountId: string): Promise<void> {
  await trx.selectFrom('accounts').select('id').where('id', '=', accountId).forNoKeyUpdate().execute()
}
