import type { Logger } from 'pino'
import { type Loop, startLoop } from '../lib/polling-loop.ts'
import { createEngine } from './engine.ts'
import { claimCampaigns } from './engine-queries.ts'
import { survivingFailures } from './failed-turns.ts'
import type { EngineMeans } from './turns.ts'

export type CampaignWorkerOptions = EngineMeans & {
  logger: Logger
  /** Milliseconds between looks for campaigns that are due. Default 250. */
  intervalMs?: number
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
export function startCampaignWorker(options: CampaignWorkerOptions): Loop {
  const { db, logger, bulkPause, intervalMs = 250 } = options
  const takeTurn = survivingFailures(createEngine(options), { db, logger })
  /** The account that had the last turn. */
  let lastAccount = ''
  let lastTurn = performance.now()
  const loop = startLoop({
    intervalMs,
    onError: (error) => logger.error({ err: error }, 'looking for campaigns failed; trying again'),
    async run() {
      const claimed = await claimCampaigns(db, inHand, leaseMs, lastAccount)
      lastAccount = claimed.at(-1)?.account_id ?? ''
      let isGoingOn = false
      for (const campaign of claimed) {
        await bulkPause?.over()
        if ((await takeTurn(campaign)) === 'went on') isGoingOn = true
        lastTurn = performance.now()
      }
      return isGoingOn
    },
  })
  // A run gives many turns, and is not over before the last.
  return { ...loop, idleMs: () => Math.min(loop.idleMs(), performance.now() - lastTurn) }
}
