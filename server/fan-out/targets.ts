import { sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import type { Handle } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import { nextSequence } from '../lib/sequence.ts'
import { sealedSecretColumns } from '../webhook-delivery/attempt/keyring.ts'
import type { DueDelivery } from '../webhook-delivery/load-deliveries.ts'
import { flowName } from '../webhook-delivery/scheduling/intake.ts'
import type { FlowName } from '../webhook-delivery/scheduling/scheduler-types.ts'

/** A webhook that may receive events, with everything that an attempt needs. */
export type Target = {
  id: string
  accountId: string
  mode: Mode
  events: readonly string[]
  webhook: DueDelivery['webhook']
  flowName: FlowName
}

export type TargetRow = Pick<DueDelivery['webhook'], 'url' | 'version' | 'flow' | 'host'> &
  Omit<DueDelivery['webhook'], 'readAt'> & { id: string; account_id: string; events: string[] }

const columns = sql.join(sealedSecretColumns.map((column) => sql.ref(`w.${column}`)))

/** Returns a query for the enabled webhooks of accounts that receive events of any of these types. */
export function selectTargets(accountIds: readonly string[], types: readonly string[]) {
  return sql<TargetRow>`
    SELECT w.id, w.account_id, w.mode, w.events, w.url, ${columns}, w.version, w.flow, f.host
    FROM webhooks w JOIN delivery_flows f ON f.number = w.flow
    WHERE w.account_id = ANY(${accountIds}::text[]) AND w.status = 'enabled' AND w.events && ${types}::text[]
    ORDER BY w.id
  `
}

/**
 * Groups webhooks by account.
 *
 * @param readAt A sequence number from before the statement was sent.
 */
export function toTargets(rows: readonly TargetRow[], readAt: number): Map<string, Target[]> {
  const targets = rows.map(({ id, account_id: accountId, events, ...webhook }) => ({
    id,
    accountId,
    mode: webhook.mode,
    events,
    webhook: { ...webhook, readAt },
    flowName: flowName(accountId, webhook),
  }))
  return Map.groupBy(targets, ({ accountId }) => accountId)
}

/** Returns the enabled webhooks that receive events of the types of `events`, by account. */
export async function findTargets(
  handle: Handle,
  events: readonly { account_id: string; type: string }[],
): Promise<Map<string, Target[]>> {
  const readAt = nextSequence()
  const accountIds = [...new Set(events.map((event) => event.account_id))]
  const types = [...new Set(events.map((event) => event.type))]
  const rows = await executePrepared(handle, { name: 'find_targets' }, selectTargets(accountIds, types))
  return toTargets(rows, readAt)
}
