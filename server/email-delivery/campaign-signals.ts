import type { Db } from '../database/connection.ts'
import { type Loop, startLoop } from '../lib/polling-loop.ts'
import { type CampaignOfEmail, type CampaignState, selectCampaignStates } from './sending-queries.ts'

/** Tells emails in hand that their campaign was paused or canceled, or rests outside of its `sendWindow`. */
export type CampaignSignals = Pick<Loop, 'idleMs' | 'stop'> & {
  /**
   * Returns a signal for an email of a campaign, until `leave` is called. It is aborted when the service stops, and
   * about 0.25 s after the campaign was paused or canceled. That of a first attempt is aborted too when the campaign
   * begins to rest; retries leave at any hour.
   */
  join(campaign: CampaignOfEmail, attempt: Attempt): { signal: AbortSignal; leave: () => void }
}

type Attempt = 'first' | 'later'

type Options = { db: Db; stopping: AbortSignal; onError: (error: unknown) => void }

/** A campaign with emails in hand. */
type Joined = {
  campaign: CampaignOfEmail
  attempt: Attempt
  controller: AbortController
  signal: AbortSignal
  emails: number
}

/** The states in which an email is not sent. */
const held: Record<Attempt, readonly CampaignState[]> = {
  first: ['paused', 'canceled', 'resting'],
  later: ['paused', 'canceled'],
}

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
      const states = await selectCampaignStates(
        db,
        [...looked.values()].map(({ campaign }) => campaign),
      )
      for (const [key, one] of looked) {
        const state = states.get(one.campaign.id)
        if (state === undefined || !held[one.attempt].includes(state)) continue
        one.controller.abort()
        // Emails that are begun after it was resumed have a signal of their own.
        if (joined.get(key) === one) joined.delete(key)
      }
      return false
    },
  })

  function add(key: string, campaign: CampaignOfEmail, attempt: Attempt): Joined {
    const controller = new AbortController()
    const signal = AbortSignal.any([stopping, controller.signal])
    const one = { campaign, attempt, controller, signal, emails: 0 }
    joined.set(key, one)
    return one
  }

  return {
    idleMs: looking.idleMs,
    stop: looking.stop,
    join(campaign, attempt) {
      const key = `${attempt} ${campaign.id}`
      const one = joined.get(key) ?? add(key, campaign, attempt)
      one.emails += 1
      return {
        signal: one.signal,
        leave() {
          one.emails -= 1
          if (one.emails === 0 && joined.get(key) === one) joined.delete(key)
        },
      }
    },
  }
}
