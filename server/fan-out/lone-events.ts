import type { CompiledQuery } from 'kysely'
import type { Trx } from '../database/connection.ts'
import { QueryBehindCommit } from '../database/prepared.ts'
import type { Clock } from '../lib/clock.ts'
import { nextSequence } from '../lib/sequence.ts'
import { noTracer, type Tracer } from '../observability/tracing/tracer.ts'
import type { LoneEvents, OutboxEvent } from '../outbox/append.ts'
import type { Leasing } from '../webhook-delivery/worker.ts'
import { receiversOf, toLeasedEvent } from './matching.ts'
import { selectTargets, type TargetRow, toTargets } from './targets.ts'
import { recordFanOut } from './trace.ts'

/*
 * Events in small transactions are delivered by the process that appends them, without a fan-out:
 *
 *   BEGIN … INSERT event, leased row in the outbox … COMMIT; SELECT webhooks
 *                                                              └▶ deliveries in memory
 *
 * The webhooks are read after the COMMIT, in the same round trip. So a webhook that was created before the commit
 * misses nothing, as with the fan-out.
 */

/**
 * Maximum number of events of a transaction that are delivered like this. For more, a batch of the fan-out costs less.
 */
const mostEvents = 16

export type LoneEventsOptions = {
  clock: Clock
  leasing: Leasing
  /** Records the spans that a fan-out would record. Default: records nothing. */
  tracer?: Tracer | undefined
}

export function createLoneEvents({ clock, leasing, tracer = noTracer }: LoneEventsOptions): LoneEvents {
  const added = new WeakMap<Trx, OutboxEvent[]>()
  let compiled: CompiledQuery<TargetRow> | undefined

  async function readTargets(trx: Trx, events: readonly OutboxEvent[]): Promise<void> {
    let readAt = 0
    let startedAt = clock.now()
    const accountIds = () => [...new Set(events.map(({ accountId }) => accountId))]
    const types = () => [...new Set(events.map(({ type }) => type))]
    compiled ??= selectTargets([], []).compile(trx)
    const query = new QueryBehindCommit<TargetRow>(compiled, {
      name: 'find_targets',
      parameters() {
        readAt = nextSequence()
        startedAt = clock.now()
        return [accountIds(), types()]
      },
      onRows(rows) {
        if (rows === null) return leasing.release(events.map(({ id }) => id))
        const targets = toTargets(rows, readAt)
        const now = clock.now()
        for (const event of events) recordFanOut(tracer, event, { startedAt, endedAt: now })
        leasing.take(
          events.map((event) => toLeasedEvent(event, receiversOf(event, targets.get(event.accountId) ?? []), now)),
        )
      },
    })
    await trx.executeQuery(query)
  }

  return {
    lease(trx, { accountId, count }) {
      return (added.get(trx)?.length ?? 0) + count > mostEvents ? null : leasing.lease(accountId)
    },
    async add(trx, events) {
      const before = added.get(trx)
      if (before !== undefined) {
        before.push(...events)
        return
      }
      const all = [...events]
      added.set(trx, all)
      await readTargets(trx, all)
    },
  }
}
