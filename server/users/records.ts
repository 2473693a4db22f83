import type { AuditAction } from '../../contract/audit-actions.ts'
import { recordAll } from '../audit-log/record.ts'
import type { Trx } from '../database/connection.ts'
import type { Author } from '../shared/scope.ts'
import { selectAccountsOf } from './member-queries.ts'

type UserEntry = {
  at: Date
  author: Author
  action: AuditAction
  user: { id: string; name: string }
  details?: Readonly<Record<string, string>>
}

/**
 * Writes an entry about a user into the audit log of each account they are a member of: it may matter to all of them.
 */
export async function recordInAccounts(trx: Trx, { user, ...entry }: UserEntry): Promise<void> {
  const target = { type: 'user', id: user.id, name: user.name } as const
  const accounts = await selectAccountsOf(trx, user.id)
  await recordAll(
    trx,
    accounts.map(({ id: accountId }) => ({ ...entry, accountId, target })),
  )
}
