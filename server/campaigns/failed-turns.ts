import { sql } from 'kysely'
import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import { queueNow } from '../queue/queue.ts'
import type { ClaimedCampaign } from './engine-queries.ts'
import type { CampaignKey } from './queries.ts'
import { keyOf, type TurnResult } from './turns.ts'

type TakeTurn = (campaign: ClaimedCampaign) => Promise<TurnResult>

/** A turn that failed is tried again after 2, 4, 8, … seconds, and at most so many. */
const longestSeconds = 300

/**
 * Returns a function that gives a campaign a turn and never rejects. A campaign whose turn fails tells why it does not go
 * on, in `status_reason`, and rests before the next try; with the first turn that does not fail, it tells nothing more.
 * The others get their turns meanwhile.
 *
 * @param means.givenUp Aborted when the service stops and waits no longer: a turn that ends then has not failed.
 */
export function survivingFailures(
  takeTurn: TakeTurn,
  { db, logger, givenUp }: { db: Db; logger: Logger; givenUp?: AbortSignal },
): TakeTurn {
  return async (campaign) => {
    try {
      const result = await takeTurn(campaign)
      if (campaign.failed_turns > 0) await forgetFailures(db, keyOf(campaign))
      return result
    } catch (error) {
      if (givenUp?.aborted) return 'waits'
      logger.error({ err: error, campaign: campaign.id }, 'a turn of a campaign failed; trying again')
    }
    try {
      await recordFailure(db, keyOf(campaign))
    } catch (error) {
      // It is due again when its lease is over.
      logger.error({ err: error, campaign: campaign.id }, 'the failure of a campaign was not recorded')
    }
    return 'waits'
  }
}

const listing = 'Its recipients could not be listed'
const sending = 'Its next messages could not be made'
const isTold =
  'because of an error of the service, whose log has the cause. It is tried again by itself. Failed so far:'

/** Without the error itself, which is for the operator. */
async function recordFailure(db: Db, { accountId, id }: CampaignKey): Promise<void> {
  await sql`
    UPDATE campaigns SET
      failed_turns = failed_turns + 1,
      due_at = ${queueNow} + make_interval(secs => least(${longestSeconds}, 2 ^ least(failed_turns + 1, 20))),
      status_reason = CASE WHEN status IN ('scheduled', 'sending') THEN
        CASE status WHEN 'scheduled' THEN ${listing} ELSE ${sending} END
          || ', ' || ${isTold} || ' ' || (failed_turns + 1)::text || '.'
      ELSE status_reason END
    WHERE account_id = ${accountId} AND id = ${id} AND due_at IS NOT NULL
  `.execute(db)
}

/** Resets the count of failed turns. The `status_reason` of a campaign that has stopped stays: it says why. */
async function forgetFailures(db: Db, { accountId, id }: CampaignKey): Promise<void> {
  await sql`
    UPDATE campaigns SET
      failed_turns = 0,
      status_reason = CASE WHEN status IN ('scheduled', 'sending') THEN NULL ELSE status_reason END
    WHERE account_id = ${accountId} AND id = ${id} AND failed_turns > 0
  `.execute(db)
}
