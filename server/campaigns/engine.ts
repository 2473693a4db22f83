import type { Trx } from '../database/connection.ts'
import { isTesting } from './ab-test.ts'
import { awaitWinner } from './await-winner.ts'
import { type Batch, makeBatch } from './batches.ts'
import { addCounts, sumOutcomes, waitingOf } from './counts.ts'
import {
  type ClaimedCampaign,
  countDeferred,
  countQueued,
  databaseMs,
  hasTestWaiting,
  lockWaiting,
  nextSendTime,
  selectWaiting,
  type Turn,
  writeTurns,
} from './engine-queries.ts'
import { addFailures, reasonToPause } from './failing-content.ts'
import { list } from './listing.ts'
import { purge } from './purge.ts'
import { type CampaignRow, updateCampaign } from './queries.ts'
import { retract, settle } from './retract.ts'
import { windowAt } from './send-window.ts'
import { takeSlots } from './throttle.ts'
import {
  atOnce,
  type EngineMeans,
  factsOf,
  fullMs,
  keyOf,
  quietMs,
  rest,
  scopeOf,
  soonMs,
  stopFor,
  type TurnResult,
  waitUntil,
  withLocked,
} from './turns.ts'
import { type CampaignContents, contentsOf } from './variants.ts'

/** Recipients that one transaction makes emails for. */
const batchSize = 200
/** Bytes of content in a batch and in the queue of a campaign, as it was written: limits both for large content. */
const batchBytes = 8 * 2 ** 20
const queuedBytes = 256 * 2 ** 20
/**
 * A campaign may have this many emails in the queue for each place that stays free there: dynamic thresholds (Choudhury
 * and Hahne, 1998). One campaign fills eight ninths; the rest is there for the next one of the account.
 */
const perFreePlace = 8
/** Maximum share of the hourly throttle that may be queued, so that few emails leave at once after an outage. */
const throttledShare = 1 / 360
/** Milliseconds until the next look where the counts say that recipients wait, and none was found. */
const queryMs = 1_000

type Room = {
  /** Number of emails that may be made. */
  count: number
  /** Returns true if there is no room for another batch once so many are made. */
  isFullAfter: (made: number) => boolean
}

/**
 * Gives a claimed campaign one turn: a step of listing or deleting its recipients, or a batch of emails. Every change is
 * one transaction that locks the campaign first and looks at its state, so that a process may die between any two, and
 * others may pause or cancel it meanwhile.
 */
export function createEngine(means: EngineMeans): (campaign: ClaimedCampaign) => Promise<TurnResult> {
  const { db, clock, outbox, emails, maxQueued = 2_000 } = means

  /** Completes a locked campaign that has no recipient left whose first attempt is to come. */
  async function complete(trx: Trx, row: CampaignRow): Promise<TurnResult> {
    const at = clock.now()
    const { recipient_count: total, handed_over_count: sent, failed_count: failed } = row
    const status_reason =
      sent === 0 && failed > 0
        ? 'The content could not be rendered for any recipient: recipients with the status failed have the reasons.'
        : null
    await updateCampaign(trx, keyOf(row), { status: 'completed', status_reason, ended_at: at, updated_at: at })
    const skipped = row.left_count + row.unsubscribed_count + row.suppressed_count
    const deferred = await countDeferred(trx, keyOf(row))
    const recipients = { total, sent, failed: total - sent, deferred, skipped }
    await outbox.append(trx, scopeOf(row), [{ type: 'campaign.completed', data: { ...factsOf(row), recipients } }])
    return rest(trx, row, null)
  }

  async function send(claimed: ClaimedCampaign): Promise<TurnResult> {
    const looked = await withLocked(db, claimed, async (trx, locked) => {
      const row = await settle(trx, locked)
      if (row.status !== 'sending') return { row: null, result: await rest(trx, row, soonMs) }
      const isOver = waitingOf(row) === 0 && row.queued_count === 0
      if (isOver) return { row: null, result: await complete(trx, row) }
      const isTested = isTesting(row) && row.queued_count === 0 && !(await hasTestWaiting(trx, keyOf(row)))
      if (isTested) return { row: null, result: await awaitWinner(trx, row, clock.now()) }
      const opens = await nextOpening(trx, row)
      if (opens !== null) return { row: null, result: await restOutside(trx, row, opens) }
      if (waitingOf(row) > 0) return { row, result: null }
      return { row: null, result: await rest(trx, row, fullMs) }
    })
    if (looked === null || looked.row === null) return looked?.result ?? 'waits'
    const { row } = looked
    const contents = await contentsOf(db, row)
    const { count, isFullAfter } = await roomFor(row, contents)
    if (count === 0) return (await withLocked(db, row, (trx, locked) => rest(trx, locked, fullMs))) ?? 'waits'
    const waiting = await selectWaiting(db, row, count)
    const batch = { ...(await makeBatch(means, { claimed, row, contents }, waiting)), seen: row, isFullAfter }
    return (await withLocked(db, row, (trx, locked) => take(trx, locked, batch))) ?? 'waits'
  }

  /**
   * Returns how many emails of a campaign may be made now. Without a throttle, it waits until enough may be made
   * for a turn, which looks at all that the campaign has in the queue: a whole batch, all who are left, or an eighth of
   * what it has in the queue. So one with little there does not wait for room that others take piece by piece.
   */
  async function roomFor(row: CampaignRow, { own, variants }: CampaignContents): Promise<Room> {
    const sizes = [own, ...variants].map(
      ({ html, text }) => Buffer.byteLength(html ?? '') + Buffer.byteLength(text ?? ''),
    )
    const bytes = Math.max(1, ...sizes)
    const inQueue = Math.min(maxQueued, Math.max(10, Math.floor(queuedBytes / bytes)))
    const queued = row.queued_count
    const places = maxQueued - (await countQueued(db, row.account_id))
    const free = Math.min(Math.ceil((perFreePlace * places - queued) / (perFreePlace + 1)), inQueue - queued)
    const whole = Math.min(atOnce(means, batchSize), Math.max(1, Math.floor(batchBytes / bytes)), inQueue)
    if (row.throttle === null) {
      const wanted = Math.min(whole, waitingOf(row))
      const worthwhile = Math.min(wanted, Math.ceil(queued / perFreePlace))
      const count = free < worthwhile ? 0 : Math.max(0, Math.min(wanted, free))
      return { count, isFullAfter: (made) => free - made < whole }
    }
    const throttled = Math.ceil(row.throttle * throttledShare) - queued
    const { count } = takeSlots(throttleOf(row), await databaseMs(db), Math.min(whole, free, throttled))
    return { count: Math.max(0, count), isFullAfter: () => false }
  }

  /** Writes a batch that was made outside of the transaction, if the campaign is as it was then. */
  async function take(
    trx: Trx,
    row: CampaignRow,
    { seen, isFullAfter, people, made }: Batch & Pick<Room, 'isFullAfter'> & { seen: CampaignRow },
  ): Promise<TurnResult> {
    // A request has paused or changed it, or another worker has had its turn.
    if (row.status !== 'sending' || !isAtSamePlace(row, seen)) return rest(trx, row, soonMs)
    // The window has closed meanwhile.
    if ((await nextOpening(trx, row)) !== null) return rest(trx, row, soonMs)
    if (people.length === 0) return findOthers(trx, row)
    const slots = row.throttle === null ? null : takeSlots(throttleOf(row), await databaseMs(trx), people.length)
    const turn = slots === null ? people : people.slice(0, slots.count)
    const last = turn.at(-1)
    if (last === undefined) return rest(trx, row, fullMs)
    const waiting = await lockWaiting(
      trx,
      keyOf(row),
      turn.map((one) => one.subscriber_id),
    )
    const ones = turn.flatMap(({ subscriber_id: id }) => {
      const one = made.get(id)
      return one !== undefined && waiting.has(id) ? [{ id, one }] : []
    })
    const letters = ones.flatMap(({ id, one }) => ('email' in one ? [{ id, email: one.email }] : []))
    const results = await emails.sendOfCampaign(
      trx,
      scopeOf(row),
      letters.map(({ email }) => email),
    )
    const refusal = results.find((result) => result instanceof Error)
    if (refusal !== undefined) return stopFor(trx, means, { row, move: 'stall', reason: refusal.message })
    const turns: Turn[] = ones.flatMap(({ id, one }): Turn[] => {
      const about = { subscriberId: id, emailId: null, reason: null }
      if ('failed' in one) return [{ ...about, status: 'failed', reason: one.failed }]
      if ('skipped' in one) return [{ ...about, status: 'skipped', reason: one.skipped }]
      return []
    })
    for (const [index, { id, email }] of letters.entries()) {
      const result = results[index]
      if (result === undefined || result instanceof Error) continue
      turns.push(
        'withheld' in result
          ? { subscriberId: id, status: 'skipped', emailId: null, reason: result.withheld }
          : { subscriberId: id, status: 'queued', emailId: email.id, reason: null },
      )
    }
    await writeTurns(trx, keyOf(row), turns)
    const variants = new Map(turn.map(({ subscriber_id: id, variant }) => [id, variant]))
    const outcomes = ones.flatMap(({ id, one }) =>
      'skipped' in one
        ? []
        : [{ variant: variants.get(id) ?? row.ab_winner, fault: 'failed' in one ? one.failed : null }],
    )
    const after = await updateCampaign(trx, keyOf(row), {
      ...addCounts(row, sumOutcomes(turns)),
      handled_to: last.subscriber_id,
      handled_send_at: last.send_at,
      ab_failed: addFailures(row, outcomes),
      ...(slots !== null && { throttled_to: slots.takenToMs }),
    })
    const reason = reasonToPause(row, after, outcomes)
    if (reason !== null) return stopFor(trx, means, { row: after, move: 'stall', reason })
    return rest(trx, after, isFullAfter(letters.length) ? fullMs : soonMs)
  }

  /** Continues a locked campaign in which no recipient after `handled_to` waits, or none whose time has come. */
  async function findOthers(trx: Trx, row: CampaignRow): Promise<TurnResult> {
    if (row.handled_to !== '') {
      // Some wait before it: they came back while another worker, which had not seen them, had its turn.
      return rest(trx, await updateCampaign(trx, keyOf(row), { handled_to: '', handled_send_at: null }), soonMs)
    }
    const next = row.local_time === null ? null : await nextSendTime(trx, keyOf(row))
    if (next === null) return rest(trx, row, queryMs)
    return waitUntil(trx, row, { reason: 'local_time', until: next })
  }

  /** Returns when the window of a campaign opens next. Null: it is open, or there is none. */
  async function nextOpening(trx: Trx, { send_window: window }: CampaignRow): Promise<Date | null> {
    if (window === null) return null
    const { isOpen, untilMs } = windowAt(window, await databaseMs(trx))
    return isOpen ? null : new Date(untilMs)
  }

  /** Takes back what no attempt was begun for, and rests until the window opens. */
  async function restOutside(trx: Trx, row: CampaignRow, opens: Date): Promise<TurnResult> {
    return waitUntil(trx, await retract(trx, emails, row), { reason: 'send_window', until: opens })
  }

  /** Removes emails that came back to the queue, and counts those that were being sent. */
  async function tidy(claimed: CampaignRow): Promise<TurnResult> {
    const result = await withLocked(db, claimed, async (trx, row) => {
      const isStopped = row.status === 'paused' || row.status === 'canceled'
      if (!isStopped) return rest(trx, row, row.status === 'completed' || row.status === 'draft' ? null : soonMs)
      const left = await retract(trx, emails, row)
      return rest(trx, left, left.queued_count > 0 ? quietMs : null)
    })
    return result ?? 'waits'
  }

  return (campaign) => {
    if (campaign.deleted_at !== null) return purge(means, keyOf(campaign))
    switch (campaign.status) {
      case 'scheduled':
        return list(means, campaign)
      case 'sending':
        return send(campaign)
      default:
        return tidy(campaign)
    }
  }
}

function isAtSamePlace(one: CampaignRow, other: CampaignRow): boolean {
  if (one.ab_winner !== other.ab_winner) return false
  return one.handled_to === other.handled_to && one.handled_send_at?.getTime() === other.handled_send_at?.getTime()
}

function throttleOf({ throttle, throttled_to: takenToMs }: CampaignRow) {
  return { perHour: throttle ?? 1, takenToMs }
}
