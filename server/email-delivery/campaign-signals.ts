import type { Db } from '../database/connection.ts'
import { type Loop, startLoop } from '../lib/polling-loop.ts'
import { type CampaignOfEmail, selectStoppedCampaigns } from './sending-queries.ts'

/** Tells emails in hand that their campaign was paused or canceled. */
export type CampaignSignals = Pick<Loop, 'idleMs' | 'stop'> & {
  /**
   * Returns a signal for an email of a campaign, until `leave` is called. It is aborted when the service stops, and
   * about 0.25 s after the campaign was paused or canceled.
   */
  join(campaign: CampaignOfEmail): { signal: AbortSignal; leave: () => void }
}

type Options = { db: Db; stopping: AbortSignal; onError: (error: unknown) => void }

/** A campaign with emails in hand. */
type Joined = { campaign: CampaignOfEmail; controller: AbortController; signal: AbortSignal; emails: number }

/** Milliseconds between looks at the campaigns with emails in hand. Without such, nothing is looked at. */
const intervalMs = 250

export function startCampaignSignals({ db, stopping, onError }: Options): CampaignSignals {
  const joined = new Map<string, Joined>()
  const looking = startLoop({
    intervalMs,
    onError,
    async run() {
      if (joined.size === 0) return false
      const looked = new Map(joined)
      const campaigns = [...looked.values()].map(({ campaign }) => campaign)
      for (const id of await selectStoppedCampaigns(db, campaigns)) {
        looked.get(id)?.controller.abort()
        // Emails that are begun after it was resumed have a signal of their own.
        if (joined.get(id) === looked.get(id)) joined.delete(id)
      }
      return false
    },
  })

  function add(campaign: CampaignOfEmail): Joined {
    const controller = new AbortController()
    const one = { campaign, controller, signal: AbortSignal.any([stopping, controller.signal]), emails: 0 }
    joined.set(campaign.id, one)
    return one
  }

  return {
    idleMs: looking.idleMs,
    stop: looking.stop,
    join(campaign) {
      const one = joined.get(campaign.id) ?? add(campaign)
      one.emails += 1
      return {
        signal: one.signal,
        leave() {
          one.emails -= 1
          if (one.emails === 0 && joined.get(campaign.id) === one) joined.delete(campaign.id)
        },
      }
    },
  }
}
