import type { Db } from '../../database/connection.ts'
import { startLoop } from '../../lib/polling-loop.ts'
import type { Queue } from '../../queue/queue.ts'
import type { Claim } from '../load-deliveries.ts'
import { claimDue } from './claim.ts'
import { flowName } from './intake.ts'
import type { FlowName, Request, Scheduler } from './scheduler-types.ts'

/** Claims deliveries for the requests that the scheduler has reserved places for, and more to have in memory. */
export type Claiming = {
  /** Asks for a delivery for this request. */
  want(request: Request, name: FlowName): void
  /** Asks for as many deliveries of a flow as may be in memory. */
  refill(name: FlowName): void
  /** Returns the milliseconds since it last claimed, or had nothing to claim, without an error. */
  idleMs(): number
  /** Stops after the claim under way. Requests that still wait for a delivery are freed. */
  stop(): Promise<void>
}

export type ClaimingOptions = {
  db: Db
  queue: Queue
  scheduler: Scheduler
  /** Milliseconds before a failed claim is tried again. */
  intervalMs: number
  onError: (error: unknown) => void
  /** Called for each claimed delivery with the request it is for. */
  onClaimed: (claim: Claim, request: Request) => void
  /** Called with claimed deliveries of a flow that are in memory from now on. */
  onInHand: (name: FlowName, claims: readonly Claim[]) => void
  /** Called with the time that a claimed delivery had waited in the queue since it was due. Seconds. */
  onWaited?: (seconds: number) => void
  /** Called when a claim has ended: places may be free. */
  onEnd: () => void
}

/** Maximum number of flows that one statement claims from. */
const maxFlows = 500

type Wants = { name: FlowName; requests: Request[] }

export function startClaiming(options: ClaimingOptions): Claiming {
  const { db, queue, scheduler, intervalMs, onError, onClaimed, onInHand, onEnd } = options
  /** By flow. */
  const wants = new Map<string, Wants>()

  function wantsOf(name: FlowName): Wants {
    const own = wants.get(name.flow) ?? { name, requests: [] }
    wants.set(name.flow, own)
    return own
  }

  function takeBatch(): Wants[] {
    const batch = [...wants.values()].slice(0, maxFlows)
    for (const { name } of batch) wants.delete(name.flow)
    return batch
  }

  async function claim(batch: readonly Wants[]): Promise<void> {
    const asks = batch.map((own) => {
      const ahead = scheduler.mayTakeInHand(own.name)
      scheduler.expectInHand(own.name, ahead)
      return { ...own, ahead, count: own.requests.length + ahead, offers: scheduler.offers(own.name.flow) }
    })
    try {
      const { counts, claims, waits, moved } = await claimDue(
        { db, queue },
        asks.map(({ name, count }) => ({ flow: Number(name.flow), count })),
      )
      for (const seconds of waits) options.onWaited?.(seconds)
      const byFlow = Map.groupBy(claims, ({ delivery }) => delivery.webhook.flow)
      for (const { name, requests, count, offers } of asks) {
        const flow = Number(name.flow)
        if ((counts.get(flow) ?? 0) < count) scheduler.drained(name.flow, offers)
        else if ((scheduler.view(name.flow)?.waiting ?? 0) <= 0) scheduler.offer(name, 2 * count)
        const found = byFlow.get(flow) ?? []
        for (const one of found.splice(0, requests.length)) onClaimed(one, requests.shift() as Request)
        onInHand(name, found)
      }
      for (const { delivery } of moved) scheduler.offer(flowName(delivery.accountId, delivery.webhook), 1)
    } finally {
      for (const { name, ahead, requests } of asks) {
        scheduler.expectInHand(name, -ahead)
        for (const request of requests) scheduler.free(request)
      }
    }
  }

  const loop = startLoop({
    intervalMs,
    onError,
    async run() {
      const batch = takeBatch()
      if (batch.length === 0) return false
      try {
        await claim(batch)
      } catch (error) {
        // The deliveries still wait in the queue, as far as this process knows.
        for (const { name } of batch) scheduler.offer(name, 1)
        throw error
      } finally {
        onEnd()
      }
      return wants.size > 0
    },
  })

  return {
    want(request, name) {
      wantsOf(name).requests.push(request)
      loop.wake()
    },
    refill(name) {
      wantsOf(name)
      loop.wake()
    },
    idleMs: loop.idleMs,
    async stop() {
      await loop.stop()
      for (const { requests } of takeBatch()) for (const request of requests) scheduler.free(request)
    },
  }
}
