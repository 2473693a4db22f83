import type { Logger } from 'pino'
import type { Db } from '../database/connection.ts'
import type { RecipientFact } from '../email-delivery/recipient-facts.ts'
import { recordFacts } from '../email-delivery/record-facts.ts'
import type { Outbox } from '../outbox/append.ts'
import { createMailLinks, type MailLinks, type MailLinksOptions } from './tracking.ts'
import { startVisitRecorder } from './visits.ts'

export type TrackingOptions = Omit<MailLinksOptions, 'record'> & {
  db: Db
  outbox: Outbox
  logger: Logger
  /** Called with every stored open and click. */
  onFact: (fact: RecipientFact) => void
  /** Milliseconds between batches of opens and clicks. Default 1,000. */
  pollIntervalMs?: number
}

export type TrackingService = {
  links: MailLinks
  /** Stores the waiting opens and clicks, then stops. */
  stop(): Promise<void>
}

/** Starts serving the pixels and links of emails in this process. */
export function startTracking(options: TrackingOptions): TrackingService {
  const { db, outbox, logger, onFact, pollIntervalMs } = options
  const visits = startVisitRecorder({
    db,
    record: async (facts) => {
      await recordFacts(db, { outbox }, facts)
      facts.forEach(onFact)
    },
    onError: (error) => logger.error({ err: error }, 'storing opens and clicks failed'),
    onDropped: (count) => logger.warn({ count }, 'opens and clicks were dropped: more arrive than can be stored'),
    ...(pollIntervalMs === undefined ? {} : { intervalMs: pollIntervalMs }),
  })
  return {
    links: createMailLinks({ ...options, record: (visit) => visits.add(visit) }),
    stop: () => visits.stop(),
  }
}
