import type { Logger } from 'pino'
import { type Loop, startLoop } from '../lib/polling-loop.ts'
import { createEngine, type EngineMeans } from './engine.ts'
import { claimCampaigns } from './engine-queries.ts'

export type CampaignWorkerOptions = EngineMeans & {
  logger: Logger
  /** Milliseconds between looks for campaigns that are due. Default 250. */
  intervalMs?: number
}

/** Campaigns that this process has in hand. They get their turns one after the other. */
const inHand = 10
/** After so long another process takes the campaigns of one that died. Milliseconds. */
const leaseMs = 30_000

/** Starts the loop that gives campaigns their turns, one batch of each account at a time. */
export function startCampaignWorker(options: CampaignWorkerOptions): Loop {
  const { db, logger, intervalMs = 250 } = options
  const takeTurn = createEngine(options)
  /** The account that had the last turn. */
  let lastAccount = ''
  return startLoop({
    intervalMs,
    onError: (error) => logger.error({ err: error }, 'looking for campaigns failed; trying again'),
    async run() {
      const claimed = await claimCampaigns(db, inHand, leaseMs, lastAccount)
      lastAccount = claimed.at(-1)?.account_id ?? ''
      let isGoingOn = false
      for (const campaign of claimed) {
        try {
          if ((await takeTurn(campaign)) === 'went on') isGoingOn = true
        } catch (error) {
          // It is due again when its lease is over.
          logger.error({ err: error, campaign: campaign.id }, 'a turn of a campaign failed; trying again')
        }
      }
      return isGoingOn
    },
  })
}
