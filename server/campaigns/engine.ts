import { isAudience } from '../audiences/presence.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import type { CampaignEmail, EmailService } from '../emails/service.ts'
import type { Clock } from '../lib/clock.ts'
import type { UnsubscribeRef } from '../message/mail-tokens.ts'
import type { Outbox } from '../outbox/append.ts'
import type { Renderer } from '../rendering/renderer.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { findProperties, valuesInMessages } from '../subscribers/properties.ts'
import { addCounts, sumOutcomes, waitingOf } from './counts.ts'
import {
  type ClaimedCampaign,
  countQueued,
  databaseMs,
  latenessOf,
  listRecipients,
  lockWaiting,
  selectWaiting,
  type Turn,
  type WaitingRecipient,
  writeTurns,
} from './engine-queries.ts'
import { contentOf, emailTo, variablesOf } from './message.ts'
import { purge } from './purge.ts'
import { type CampaignRow, lockCampaign, setDue, updateCampaign } from './queries.ts'
import { retract, settle } from './retract.ts'
import { conditionOf } from './segments.ts'
import { statusAfter } from './states.ts'
import { takeSlots } from './throttle.ts'

export type EngineMeans = {
  db: Db
  clock: Clock
  outbox: Outbox
  renderer: Renderer
  emails: Pick<EmailService, 'sendOfCampaign' | 'takeBack' | 'cancelQueued'>
  /** Returns the link with which a recipient unsubscribes. */
  unsubscribeUrl: (ref: UnsubscribeRef) => string
  /** Maximum emails of an account that wait for their first attempt. Default 2,000. */
  maxQueued?: number
}

/** Contacts that one transaction looks at for the list of recipients. */
const listedAtOnce = 10_000
/** Recipients that one transaction makes emails for. */
const batchSize = 200
/** Bytes of content in a batch and in the queue of an account, as it was written: limits both for large content. */
const batchBytes = 8 * 2 ** 20
const queuedBytes = 256 * 2 ** 20
/** A throttled campaign may have so much of an hour in the queue, so that little leaves at once after a standstill. */
const throttledShare = 1 / 360
/** How late a campaign with `lateStart: skip` may start. Milliseconds. */
const lateMs = 10 * 60_000
/**
 * A turn renders for so long, and then takes what is there: campaigns get their turns one after the other, so that one
 * whose content is slow to render must not hold up those of others. Milliseconds.
 */
const renderingMs = 1_000
/** People that a turn renders for before it knows how long one takes: fewer than may be too late for a process. */
const firstRendered = 8
/** When all of so many failed to be rendered, the campaign is paused. */
const failuresThatPause = 100
/** How soon a campaign is looked at again: that goes on, whose emails have to leave first, and that is paused. */
const soonMs = 0
const fullMs = 200
const quietMs = 2_000
const queryMs = 1_000

/** What a campaign did in its turn. */
export type TurnResult = 'went on' | 'waits'

/**
 * Gives a claimed campaign one turn: a step of listing or deleting its recipients, or a batch of emails. Every change is
 * one transaction that locks the campaign first and looks at its state, so that a process may die between any two, and
 * others may pause or cancel it meanwhile.
 */
export function createEngine(means: EngineMeans): (campaign: ClaimedCampaign) => Promise<TurnResult> {
  const { db, clock, outbox, renderer, emails, unsubscribeUrl, maxQueued = 2_000 } = means

  /** Runs `work` on the locked campaign. Does nothing when it is deleted. */
  async function withLocked<T>(
    claimed: CampaignRow,
    work: (trx: Trx, row: CampaignRow) => Promise<T>,
  ): Promise<T | null> {
    return inTransaction(db, async (trx) => {
      const row = await lockCampaign(trx, scopeOf(claimed), claimed.id)
      return row === undefined ? null : work(trx, row)
    })
  }

  /** Ends the turn of a locked campaign. */
  async function rest(trx: Trx, row: CampaignRow, ms: number | null): Promise<TurnResult> {
    await setDue(trx, keyOf(row), ms)
    return ms === soonMs ? 'went on' : 'waits'
  }

  async function stopFor(trx: Trx, row: CampaignRow, move: 'skip' | 'stall', reason: string): Promise<TurnResult> {
    const at = clock.now()
    const status = statusAfter(move, row.status) ?? row.status
    const ended = status === 'canceled' ? { ended_at: at } : {}
    const stopped = await updateCampaign(trx, keyOf(row), { status, status_reason: reason, updated_at: at, ...ended })
    const left = await retract(trx, emails, stopped)
    return rest(trx, left, left.queued_count > 0 ? quietMs : null)
  }

  /** Lists the next recipients, and starts sending after the last. */
  async function list(claimed: CampaignRow): Promise<TurnResult> {
    const result = await withLocked(claimed, async (trx, row) => {
      if (row.status !== 'scheduled') return rest(trx, row, soonMs)
      const late = await latenessOf(trx, keyOf(row))
      if (late < 0) return rest(trx, row, -late)
      if (row.listed_at === null && row.late_start === 'skip' && late > lateMs) {
        const reason = `It was to start at ${row.scheduled_at?.toISOString()}, and the service was not running then: "lateStart" is "skip".`
        return stopFor(trx, row, 'skip', reason)
      }
      if (!(await isAudience(trx, row.account_id, row.audience_id))) {
        return stopFor(trx, row, 'skip', 'The audience was deleted before the campaign started.')
      }
      const listedAt = row.listed_at ?? clock.now()
      const condition = await conditionOf(trx, row, listedAt)
      if (typeof condition === 'string') return stopFor(trx, row, 'skip', condition)
      const listing = { limit: listedAtOnce, condition }
      const { last, count, looked } = await listRecipients(trx, { ...row, listed_at: listedAt }, listing)
      const listed = {
        listed_at: listedAt,
        listed_to: last ?? row.listed_to,
        recipient_count: row.recipient_count + count,
      }
      if (looked === listedAtOnce) {
        await updateCampaign(trx, keyOf(row), listed)
        return rest(trx, row, soonMs)
      }
      return start(trx, { ...row, ...listed }, listed)
    })
    return result ?? 'waits'
  }

  async function start(trx: Trx, row: CampaignRow, listed: Partial<CampaignRow>): Promise<TurnResult> {
    const at = clock.now()
    await updateCampaign(trx, keyOf(row), { ...listed, status: 'sending', started_at: at, updated_at: at })
    const recipients = { total: row.recipient_count }
    await outbox.append(trx, scopeOf(row), [{ type: 'campaign.sent', data: { ...factsOf(row), recipients } }])
    return rest(trx, row, soonMs)
  }

  /** Completes a locked campaign that has no recipient left whose first attempt is to come. */
  async function complete(trx: Trx, row: CampaignRow): Promise<TurnResult> {
    const at = clock.now()
    const { recipient_count: total, handed_over_count: sent, failed_count: failed } = row
    const status_reason =
      sent === 0 && failed > 0
        ? 'The content could not be rendered for any recipient: recipients with the status failed have the reasons.'
        : null
    await updateCampaign(trx, keyOf(row), { status: 'completed', status_reason, ended_at: at, updated_at: at })
    const recipients = { total, sent, failed: total - sent }
    await outbox.append(trx, scopeOf(row), [{ type: 'campaign.completed', data: { ...factsOf(row), recipients } }])
    return rest(trx, row, null)
  }

  async function send(claimed: ClaimedCampaign): Promise<TurnResult> {
    const looked = await withLocked(claimed, async (trx, locked) => {
      const row = await settle(trx, locked)
      if (row.status !== 'sending') return { row: null, result: await rest(trx, row, soonMs) }
      if (waitingOf(row) > 0) return { row, result: null }
      if (row.queued_count === 0) return { row: null, result: await complete(trx, row) }
      return { row: null, result: await rest(trx, row, fullMs) }
    })
    if (looked === null || looked.row === null) return looked?.result ?? 'waits'
    const { row } = looked
    const wanted = await roomFor(row)
    if (wanted === 0) return (await withLocked(row, (trx, locked) => rest(trx, locked, fullMs))) ?? 'waits'
    const waiting = await selectWaiting(db, row, wanted)
    const { people, made } = await makeInTime(claimed, row, waiting)
    return (await withLocked(row, (trx, locked) => take(trx, locked, { seen: row, people, made }))) ?? 'waits'
  }

  /** Makes the messages to the first of `recipients`: as many as there is time for, and some at least. */
  async function makeInTime(
    claimed: ClaimedCampaign,
    row: CampaignRow,
    recipients: readonly WaitingRecipient[],
  ): Promise<Pick<Batch, 'people' | 'made'>> {
    const since = performance.now()
    const made = new Map<string, Made>()
    let done = 0
    for (let next = firstRendered; done < recipients.length && next > 0; ) {
      const some = recipients.slice(done, done + next)
      for (const [id, one] of await makeAll(claimed, row, some)) made.set(id, one)
      done += some.length
      const takenMs = performance.now() - since
      next = Math.floor(((renderingMs - takenMs) * done) / takenMs)
    }
    return { people: recipients.slice(0, done), made }
  }

  /** Returns how many emails of a campaign may be made now. */
  async function roomFor(row: CampaignRow): Promise<number> {
    const bytes = Math.max(1, Buffer.byteLength(row.html ?? '') + Buffer.byteLength(row.text ?? ''))
    const queued = await countQueued(db, row.account_id)
    const inQueue = Math.min(maxQueued, Math.max(10, Math.floor(queuedBytes / bytes)))
    const room = Math.min(batchSize, Math.max(1, Math.floor(batchBytes / bytes)), inQueue - queued)
    if (row.throttle === null) return Math.max(0, room)
    const throttled = Math.ceil(row.throttle * throttledShare) - row.queued_count
    const { count } = takeSlots(throttleOf(row), await databaseMs(db), Math.min(room, throttled))
    return Math.max(0, count)
  }

  type Made = { email: CampaignEmail } | { failed: string } | { skipped: 'left' | 'unsubscribed' }

  /** Renders the messages to those who are still in the audience. Changes nothing. */
  async function makeAll(
    claimed: ClaimedCampaign,
    row: CampaignRow,
    recipients: readonly WaitingRecipient[],
  ): Promise<ReadonlyMap<string, Made>> {
    const now = clock.now()
    const declared = await findProperties(db, row.account_id)
    const made = new Map<string, Made>()
    const written = recipients.flatMap((recipient) => {
      const { subscriber_id: id, email, contact_status: ofContact, person_status: ofPerson } = recipient
      if (email === null || ofContact === null) made.set(id, { skipped: 'left' })
      else if (ofContact === 'unsubscribed' || ofPerson === 'unsubscribed') made.set(id, { skipped: 'unsubscribed' })
      else {
        const { first_name: firstName, last_name: lastName } = recipient
        const properties = valuesInMessages(recipient.properties ?? {}, declared)
        const person = { id, email, firstName, lastName, properties }
        return [{ id, person, emailId: newId('email', now) }]
      }
      return []
    })
    const renderings = await renderer.render(
      contentOf(row),
      written.map(({ person, emailId }) =>
        variablesOf(person, {
          campaign: row,
          accountName: claimed.account_name,
          unsubscribeUrl: unsubscribeUrl({
            emailId,
            position: 0,
            accountId: row.account_id,
            address: person.email,
            topicId: row.topic_id ?? undefined,
          }),
        }),
      ),
    )
    for (const [index, { id, person, emailId }] of written.entries()) {
      const rendering = renderings[index]
      if (rendering === undefined || rendering.status === 'failed') {
        made.set(id, { failed: rendering?.reason ?? 'It was not rendered.' })
        continue
      }
      const email = await emailTo(person, row, { rendered: rendering.rendered, now })
      made.set(
        id,
        typeof email === 'string' ? { failed: email } : { email: { id: emailId, campaignId: row.id, email } },
      )
    }
    return made
  }

  type Batch = { seen: CampaignRow; people: readonly WaitingRecipient[]; made: ReadonlyMap<string, Made> }

  /** Writes a batch that was made outside of the transaction, if the campaign is as it was then. */
  async function take(trx: Trx, row: CampaignRow, { seen, people, made }: Batch): Promise<TurnResult> {
    // Somebody else has paused it, changed it, or had a turn.
    if (row.status !== 'sending' || row.handled_to !== seen.handled_to) return rest(trx, row, soonMs)
    // Some wait below `handled_to`: they came back while another worker, which had not seen them, had its turn.
    if (people.length === 0 && row.handled_to !== '') {
      return rest(trx, await updateCampaign(trx, keyOf(row), { handled_to: '' }), soonMs)
    }
    const slots = row.throttle === null ? null : takeSlots(throttleOf(row), await databaseMs(trx), people.length)
    const turn = slots === null ? people : people.slice(0, slots.count)
    if (turn.length === 0) return rest(trx, row, people.length === 0 ? queryMs : fullMs)
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
    if (refusal !== undefined) return stopFor(trx, row, 'stall', refusal.message)
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
    const after = await updateCampaign(trx, keyOf(row), {
      ...addCounts(row, sumOutcomes(turns)),
      handled_to: turn.at(-1)?.subscriber_id ?? row.handled_to,
      ...(slots !== null && { throttled_to: slots.takenToMs }),
    })
    const isHopeless = after.failed_count >= failuresThatPause && after.queued_count + after.handed_over_count === 0
    const fault = turns.findLast(({ status }) => status === 'failed')?.reason
    if (isHopeless && fault) {
      const reason = `The content could not be rendered for any of the first ${after.failed_count} people. The last fault: ${fault}`
      return stopFor(trx, after, 'stall', reason)
    }
    return rest(trx, after, soonMs)
  }

  /** Takes what came back to the queue out of it, and counts what was in a conversation. */
  async function tidy(claimed: CampaignRow): Promise<TurnResult> {
    const result = await withLocked(claimed, async (trx, row) => {
      const isStopped = row.status === 'paused' || row.status === 'canceled'
      if (!isStopped) return rest(trx, row, row.status === 'completed' || row.status === 'draft' ? null : soonMs)
      const left = await retract(trx, emails, row)
      return rest(trx, left, left.queued_count > 0 ? quietMs : null)
    })
    return result ?? 'waits'
  }

  return (campaign) => {
    if (campaign.deleted_at !== null) return purge(db, keyOf(campaign))
    switch (campaign.status) {
      case 'scheduled':
        return list(campaign)
      case 'sending':
        return send(campaign)
      default:
        return tidy(campaign)
    }
  }
}

function scopeOf({ account_id: accountId, mode }: CampaignRow): Scope {
  return { accountId, mode }
}

function keyOf({ account_id: accountId, id }: CampaignRow) {
  return { accountId, id }
}

function factsOf({ id, audience_id: audienceId, name }: CampaignRow) {
  return { campaignId: id, audienceId, name }
}

function throttleOf({ throttle, throttled_to: takenToMs }: CampaignRow) {
  return { perHour: throttle ?? 1, takenToMs }
}
