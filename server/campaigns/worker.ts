import type { Logger } from 'pino'
import { type Loop, startLoop } from '../lib/polling-loop.ts'
import { timeout } from '../lib/timer.ts'
import { abortableRenderer } from './abortable-renderer.ts'
import { createEngine } from './engine.ts'
import { claimCampaigns, releaseCampaigns } from './engine-queries.ts'
import { survivingFailures } from './failed-turns.ts'
import { createTimeShares, type TurnTime } from './time-shares.ts'
import type { EngineMeans } from './turns.ts'

export type CampaignWorkerOptions = EngineMeans & {
  logger: Logger
  /** Milliseconds between looks for campaigns that are due. Default 250. */
  intervalMs?: number
}

export type CampaignWorker = Omit<Loop, 'stop'> & {
  /**
   * Stops after the turn under way, and gives the campaigns in hand to other processes. What that turn renders is given
   * up after `deadlineMs` milliseconds, and nothing of it is written. Default: never.
   */
  stop(deadlineMs?: number): Promise<void>
}

/** Campaigns that this process has in hand. They get their turns one after the other. */
const inHand = 10
/** After so long another process takes the campaigns of one that died. Milliseconds. */
const leaseMs = 30_000

/**
 * A worker without a turn that ended, or a look that found nothing, for this long counts as not alive. Longer than a
 * turn may take, in which each message is as slow to render as it may be. Milliseconds.
 */
export const campaignSilenceLimitMs = 120_000

/** Starts the loop that gives campaigns their turns, one batch of each account at a time. */
export function startCampaignWorker(options: CampaignWorkerOptions): CampaignWorker {
  const { db, logger, bulkPause, intervalMs = 250 } = options
  const shares = createTimeShares()
  const stopping = new AbortController()
  /** Aborted when the turn under way may take no longer. */
  const givingUp = new AbortController()
  const engine = createEngine({ ...options, renderer: abortableRenderer(options.renderer, givingUp.signal) })
  const takeTurn = survivingFailures(engine, { db, logger, givenUp: givingUp.signal })
  /** The account that had the last turn. */
  let lastAccount = ''
  let lastTurn = performance.now()
  const loop = startLoop({
    intervalMs,
    onError: (error) => logger.error({ err: error }, 'looking for campaigns failed; trying again'),
    async run() {
      const claimed = await shares.claim((without) =>
        claimCampaigns(db, inHand, leaseMs, { after: lastAccount, without }),
      )
      lastAccount = claimed.at(-1)?.account_id ?? ''
      let isGoingOn = false
      const times: TurnTime[] = []
      for (const campaign of claimed) {
        await bulkPause?.over()
        if (stopping.signal.aborted) break
        const since = performance.now()
        if ((await takeTurn(campaign)) === 'went on') isGoingOn = true
        lastTurn = performance.now()
        times.push({ accountId: campaign.account_id, ms: lastTurn - since })
      }
      if (stopping.signal.aborted) await releaseCampaigns(db, claimed)
      shares.record(times)
      return isGoingOn || shares.isOwed()
    },
  })
  return {
    ...loop,
    // A run gives many turns, and is not over before the last.
    idleMs: () => Math.min(loop.idleMs(), performance.now() - lastTurn),
    async stop(deadlineMs) {
      stopping.abort()
      const stopped = loop.stop()
      if (deadlineMs !== undefined) {
        await Promise.race([stopped, timeout(deadlineMs)])
        givingUp.abort()
      }
      await stopped
    },
  }
}
