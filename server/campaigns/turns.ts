import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import type { EmailService } from '../emails/service.ts'
import type { Clock } from '../lib/clock.ts'
import type { MessagePageRef, UnsubscribeRef } from '../message/mail-tokens.ts'
import type { Outbox } from '../outbox/append.ts'
import type { Renderer } from '../rendering/renderer.ts'
import type { Scope } from '../shared/scope.ts'
import { databaseMs } from './engine-queries.ts'
import { type CampaignRow, type CampaignWaiting, lockCampaign, setDue, updateCampaign } from './queries.ts'
import { retract } from './retract.ts'
import { statusAfter } from './states.ts'

/*
 * The parts that all turns of a campaign share: docs/architecture/campaign-states.md.
 */

export type EngineMeans = {
  db: Db
  clock: Clock
  outbox: Outbox
  renderer: Renderer
  emails: Pick<EmailService, 'sendOfCampaign' | 'takeBack' | 'cancelQueued'>
  /** Returns the link with which a recipient unsubscribes. */
  unsubscribeUrl: (ref: UnsubscribeRef) => string
  /** Returns the link with which a recipient reads the message in a browser. */
  webUrl: (ref: MessagePageRef) => string
  /**
   * Lets emails that are sent singly go before the turns of campaigns: `over` resolves when a turn may begin, and `atOnce`
   * returns how many of so many emails, contacts or recipients a step takes. Default: at once, and all.
   */
  bulkPause?: { over(): Promise<void>; atOnce(most: number): number }
  /** Maximum emails of an account that wait for their first attempt. Default 2,000. */
  maxQueued?: number
  /** Time after which a statement that compares people with segments is ended. Milliseconds. Default 5,000. */
  comparingTimeoutMs?: number
}

/** Returns how many of at most `most` items a step takes: fewer beside emails that are sent singly. */
export function atOnce({ bulkPause }: Pick<EngineMeans, 'bulkPause'>, most: number): number {
  return bulkPause?.atOnce(most) ?? most
}

/** The outcome of a turn of a campaign. */
export type TurnResult = 'went on' | 'waits'

/** How soon a campaign is looked at again: that goes on, whose emails have to leave first, and that is stopped. */
export const soonMs = 0
export const fullMs = 200
export const quietMs = 2_000

/** Runs `work` on the locked campaign, in a transaction. Does nothing when it is deleted. */
export async function withLocked<T>(
  db: Db,
  claimed: CampaignRow,
  work: (trx: Trx, row: CampaignRow) => Promise<T>,
): Promise<T | null> {
  return inTransaction(db, async (trx) => {
    const row = await lockCampaign(trx, scopeOf(claimed), claimed.id)
    return row === undefined ? null : work(trx, row)
  })
}

/** Ends the turn of a locked campaign: it is due again after `ms`. Null: never. */
export async function rest(
  trx: Trx,
  row: CampaignRow,
  ms: number | null,
  waiting: CampaignWaiting | null = null,
): Promise<TurnResult> {
  await setDue(trx, keyOf(row), ms, waiting)
  return ms === soonMs ? 'went on' : 'waits'
}

/** Ends the turn of a locked campaign: it rests until a time, and looks at what is queued before. */
export async function waitUntil(
  trx: Trx,
  row: CampaignRow,
  waiting: CampaignWaiting & { until: Date },
): Promise<TurnResult> {
  const ms = Math.max(1, waiting.until.getTime() - (await databaseMs(trx)))
  return rest(trx, row, row.queued_count > 0 ? Math.min(ms, quietMs) : ms, waiting)
}

/** Ends the turn of a locked campaign by stopping it, with the reason for people. Takes queued emails back. */
export async function stopFor(
  trx: Trx,
  { emails, clock }: Pick<EngineMeans, 'emails' | 'clock'>,
  { row, move, reason }: { row: CampaignRow; move: 'skip' | 'stall'; reason: string },
): Promise<TurnResult> {
  const at = clock.now()
  const status = statusAfter(move, row.status) ?? row.status
  const ended = status === 'canceled' ? { ended_at: at, listed_segments: null } : {}
  const stopped = await updateCampaign(trx, keyOf(row), { status, status_reason: reason, updated_at: at, ...ended })
  const left = await retract(trx, emails, stopped)
  return rest(trx, left, left.queued_count > 0 ? quietMs : null)
}

export function scopeOf({ account_id: accountId, mode }: CampaignRow): Scope {
  return { accountId, mode }
}

export function keyOf({ account_id: accountId, id }: CampaignRow) {
  return { accountId, id }
}

/** Returns the fields of a campaign in the data of its events. */
export function factsOf({ id, audience_id: audienceId, name }: CampaignRow) {
  return { campaignId: id, audienceId, name }
}
