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

/** Returns a query for the enabled webhooks of accounts that receive events of any of these types, in no order. */
export function selectTargets(accountIds: readonly string[], types: readonly string[]) {
  return sql<TargetRow>`
    SELECT w.id, w.account_id, w.mode, w.events, w.url, ${columns}, w.version, w.flow, f.host
    FROM webhooks w JOIN delivery_flows f ON f.number = w.flow
    WHERE w.account_id = ANY(${accountIds}::text[]) AND w.status = 'enabled' AND w.events && ${types}::text[]
  `
}

/**
 * Groups webhooks by account, each group in the order of their ids.
 *
 * @param readAt A sequence number from before the statement was sent.
 */
export function toTargets(rows: readonly TargetRow[], readAt: number): Map<string, Target[]> {
  const inOrder = rows.toSorted((one, other) => (one.id < other.id ? -1 : 1))
  const targets = inOrder.map(({ id, account_id: accountId, events, ...webhook }) => ({
    id,
    accountId,
    mode: webhook.mode,
    events,
    webhook: { ...webhook, readAt },
    flowName: flowName(accountId, webhook),
  }))
  return Map.groupBy(targets, ({ accountId }) => accountId)
}

/** Maximum number of webhooks that are read for a batch together, and then of one account after the other. */
const maxTogether = 5_000

/** The enabled webhooks of the accounts of a batch. */
export type Targets = {
  of(accountId: string): readonly Target[] | Promise<readonly Target[]>
  /** Returns true when so many were read one after the other that those of this account are left for another batch. */
  isFull(accountId: string): boolean
}

/**
 * Reads the enabled webhooks that receive events of the types of `events`: of all accounts together, or where they are
 * very many, of each account when it is asked for.
 */
export async function findTargets(
  handle: Handle,
  events: readonly { account_id: string; type: string }[],
): Promise<Targets> {
  const accountIds = [...new Set(events.map((event) => event.account_id))]
  const types = [...new Set(events.map((event) => event.type))]
  const readAt = nextSequence()
  const some = sql<TargetRow>`${selectTargets(accountIds, types)} LIMIT ${maxTogether}`
  const rows = await executePrepared(handle, { name: 'find_some_targets' }, some)
  if (rows.length < maxTogether) {
    const targets = toTargets(rows, readAt)
    return { of: (accountId) => targets.get(accountId) ?? [], isFull: () => false }
  }
  const read = new Map<string, readonly Target[]>()
  let count = 0
  async function readOne(accountId: string): Promise<readonly Target[]> {
    const readOneAt = nextSequence()
    const own = await executePrepared(handle, { name: 'find_targets' }, selectTargets([accountId], types))
    const targets = toTargets(own, readOneAt).get(accountId) ?? []
    read.set(accountId, targets)
    count += targets.length
    return targets
  }
  return {
    of: (accountId) => read.get(accountId) ?? readOne(accountId),
    isFull: (accountId) => count >= maxTogether && !read.has(accountId),
  }
}
