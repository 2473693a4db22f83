import type { Logger } from 'pino'
import { idPattern } from '../../contract/ids.ts'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { continueAfter, timeOf } from '../shared/ids.ts'

/** The newest event may be this far ahead without a warning, since clocks of several machines differ. Milliseconds. */
const usualSkewMs = 1_000

/**
 * Makes the ids of this process continue after the newest event, so that lists with the newest first stay in order even
 * after a restart with a clock that was set back. Logs a warning in that case. Polling does not depend on it.
 */
export async function continueFromNewestEvent(
  db: Db,
  { clock, logger }: { clock: Clock; logger: Logger },
): Promise<void> {
  const newest = await db.selectFrom('events').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst()
  // An id that this service cannot have written must not prevent the start.
  if (newest === undefined || !idPattern('event').test(newest.id)) return
  continueAfter(newest.id)
  const aheadMs = timeOf(newest.id).getTime() - clock.now().getTime()
  if (aheadMs > usualSkewMs) {
    logger.warn(
      { newestEventId: newest.id, aheadSeconds: Math.round(aheadMs / 1000) },
      'the newest event is of a later time than now: the clock of this machine was set back, or is behind',
    )
  }
}
