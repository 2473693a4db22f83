import { type RawBuilder, sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Trx } from '../database/connection.ts'
import { DomainError } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'

/*
 * Guards of the audiences, segments and topics that campaigns need. Each function throws `conflict` while a campaign
 * that needs the row is scheduled, sending or paused.
 * `send` locks the same rows in a weaker mode: it waits for a deletion, and a deletion waits for it.
 */

/** Campaigns that an error names. */
const named = 5

/** Guards an audience that is locked to be deleted. */
export function guardUsedAudience(trx: Trx, scope: Scope, id: string): Promise<void> {
  return guard(trx, scope, { what: `audience "${id}"`, needs: sql`audience_id = ${id}` })
}

/** Guards a segment that is locked to be deleted. */
export function guardUsedSegment(trx: Trx, scope: Scope, id: string): Promise<void> {
  return guard(trx, scope, { what: `segment "${id}"`, needs: sql`${id} = ANY(segment_ids)` })
}

/** Guards a topic that is locked to be deleted. */
export function guardUsedTopic(trx: Trx, scope: Scope, id: string): Promise<void> {
  return guard(trx, scope, { what: `topic "${id}"`, needs: sql`topic_id = ${id}` })
}

async function guard(
  trx: Trx,
  { accountId, mode }: Scope,
  { what, needs }: { what: string; needs: RawBuilder<unknown> },
): Promise<void> {
  const { rows } = await sql<{ id: string; mode: Mode; status: string }>`
    SELECT id, mode, status FROM campaigns
    WHERE account_id = ${accountId} AND ${needs} AND status IN ('scheduled', 'sending', 'paused')
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
    `The ${what} has campaigns that have not ended: ${list.join(', ')}. Cancel them, or wait until they have ended.`,
  )
}
