import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Trx } from '../database/connection.ts'
import { DomainError } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'

/** Campaigns that an error names. */
const named = 5

/**
 * Throws `conflict` while campaigns to a locked audience are scheduled, sending or paused. Sending a campaign holds its
 * audience, so none is begun before the transaction ends.
 */
export async function guardUsedAudience(trx: Trx, { accountId, mode }: Scope, audienceId: string): Promise<void> {
  const { rows } = await sql<{ id: string; mode: Mode; status: string }>`
    SELECT id, mode, status FROM campaigns
    WHERE account_id = ${accountId} AND audience_id = ${audienceId} AND status IN ('scheduled', 'sending', 'paused')
    ORDER BY id
  `.execute(trx)
  if (rows.length === 0) return
  const ours = rows.filter((row) => row.mode === mode)
  const others = rows.length - Math.min(ours.length, named)
  const list = [
    ...ours.slice(0, named).map(({ id, status }) => `"${id}" (${status})`),
    ...(others === 0 ? [] : [ours.length === 0 ? `${others} of the other mode` : `${others} more`]),
  ]
  throw new DomainError(
    'conflict',
    `The audience "${audienceId}" has campaigns that have not ended: ${list.join(', ')}. Cancel them, or wait until they have ended.`,
  )
}
