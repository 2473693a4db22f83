import type { Logger } from 'pino'
import { idPattern } from '../../contract/ids.ts'
import type { Db } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { continueAfter, timeOf } from '../shared/ids.ts'

/** How far the newest event may be ahead before it is worth a word: what clocks of several machines differ by. Milliseconds. */
const usualSkewMs = 1_000

/**
 * Has the identifiers of this process go on from the newest event there is, so that lists with the newest first begin
 * with it also after a restart with a clock that was set back. Says so in the log. Polling does not depend on it.
 */
export async function continueFromNewestEvent(
  db: Db,
  { clock, logger }: { clock: Clock; logger: Logger },
): Promise<void> {
  const newest = await db.selectFrom('events').select('id').orderBy('id', 'desc').limit(1).executeTakeFirst()
  // A row that nothing of ours wrote is no reason not to start.
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
