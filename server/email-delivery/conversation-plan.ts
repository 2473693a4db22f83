import { simulatorDomain } from '../../contract/simulator.ts'
import type { Lane } from '../shared/lanes.ts'
import type { Unusable } from '../smtp/transport.ts'
import { isWaiting } from './email-status.ts'
import type { RecipientFact } from './recipient-facts.ts'
import { isOutOfPatience } from './retry-schedule.ts'
import { type EmailDomain, refusalOf, type SendRefusal, type Withholding } from './send-refusal.ts'
import type { DueEmail, DueRecipient, RecipientKey, Resent, WaitingRecipient } from './sending-queries.ts'
import { play } from './simulator.ts'

/** A planned SMTP conversation: recipients of one email that share a destination. */
export type Planned = {
  email: DueEmail
  lane: Lane
  destination: string
  /** True: there is one recipient, and the message is that recipient's own copy. */
  personal: boolean
  recipients: readonly DueRecipient[]
  /** Releases the permit for the destination. Called once the transport has the message, or the conversation ended. */
  leave: () => void
}

type WithheldRecipient = DueRecipient & { withheld: Withholding }

type Obstructed = { recipient: DueRecipient; obstacle: SendRefusal }

/** The work to do for a claimed email. */
export type Plan = {
  email: DueEmail
  conversations: readonly Planned[]
  /** Recipients at the simulator. */
  simulated: readonly DueRecipient[]
  /** Recipients that may no longer be sent to: they are suppressed or unsubscribed. */
  withheld: readonly WithheldRecipient[]
  /** Recipients that are not sent to because their campaign was canceled. */
  canceled: readonly DueRecipient[]
  /** True: the campaign is paused, or rests before the first attempt, so that its recipients wait. */
  isHeld: boolean
  /** Recipients of a paused campaign that a dead process was sending to. */
  lost: readonly DueRecipient[]
  /** Recipients that cannot be sent to because of the sending domain or unusable links. */
  obstructed: readonly Obstructed[]
  /** Destinations without room: their due recipients wait for a later pass. */
  parkedAt: readonly string[]
  /** Destinations that cannot be used now, each with the due recipients that wait for it. */
  waiting: readonly BlockedRecipients[]
}

export type BlockedRecipients = { unusable: Unusable; recipients: readonly DueRecipient[] }

/** The parts of a transport that group recipients and limit new conversations. */
export type Routes = {
  destinationOf(domain: string): string
  /** Takes a permit for a destination and returns its release function; null: there is no permit. */
  take(destination: string): (() => void) | null
  /** Returns why a destination without a permit cannot be used; null: it can, and only waits for a permit. */
  unusable(destination: string): Unusable | null
}

/** Settings for sending one email. */
export type Manner = {
  lane: Lane
  /** True: each recipient gets a copy of their own. */
  personal: boolean
  /** A reason, other than the sending domain, not to send the email; null: none. */
  obstacle: SendRefusal | null
}

/**
 * Plans the work for an email. All due recipients of one destination share a conversation; with personal copies,
 * each recipient has a conversation of their own.
 */
export function planOf(email: DueEmail, { lane, personal, obstacle }: Manner, routes: Routes): Plan {
  const isHeld =
    email.campaignStatus === 'paused' || (email.campaignStatus === 'resting' && email.recipients.every(isUntried))
  const lost = isHeld ? email.recipients.filter(({ status }) => status === 'sending') : []
  const waitingNow = isHeld ? [] : email.recipients.filter((recipient) => recipient.due)
  const canceled = email.campaignStatus === 'canceled' ? waitingNow : []
  const due = canceled.length > 0 ? [] : waitingNow
  const simulated = due.filter(({ domain }) => domain === simulatorDomain)
  const withheld = due.filter(isWithheld)
  const real = due.filter((recipient) => recipient.domain !== simulatorDomain && recipient.withheld === null)
  const ofDomain = obstructedOf(email.domain, real)
  const obstructed =
    ofDomain.length > 0 || obstacle === null ? ofDomain : real.map((recipient) => ({ recipient, obstacle }))
  const sendable = obstructed.length > 0 ? [] : real
  const together = [...Map.groupBy(sendable, ({ domain }) => routes.destinationOf(domain))]
  const groups = personal
    ? together.flatMap(([destination, members]) => members.map((one) => ({ destination, recipients: [one] })))
    : together.map(([destination, recipients]) => ({ destination, recipients }))
  const parkedAt = new Set<string>()
  const waiting: BlockedRecipients[] = []
  const conversations = groups.flatMap((group) => {
    const leave = routes.take(group.destination)
    if (leave !== null) return [{ ...group, email, lane, personal, leave }]
    const unusable = routes.unusable(group.destination)
    if (unusable === null) parkedAt.add(group.destination)
    else waiting.push({ unusable, recipients: group.recipients })
    return []
  })
  const held = { isHeld, lost }
  return { email, conversations, simulated, withheld, canceled, ...held, obstructed, parkedAt: [...parkedAt], waiting }
}

/**
 * Returns whether nothing was tried for a recipient. Others leave outside of the `sendWindow` too: retries, what a dead
 * process had begun, and what has waited for the servers of its domain, although its first attempt is to come.
 */
export function isUntried({ status, attempts }: DueRecipient): boolean {
  return status === 'queued' && attempts === 0
}

/**
 * Returns the recipients with the reason why their sending domain does not allow sending: all of them or none.
 *
 * @param domain Null: the domain was deleted.
 */
export function obstructedOf(domain: EmailDomain | null, recipients: readonly DueRecipient[]): Obstructed[] {
  return recipients.flatMap((recipient) => {
    const obstacle = refusalOf(domain, recipient)
    return obstacle === null ? [] : [{ recipient, obstacle }]
  })
}

/**
 * Returns the recipients to mark as `sending` (`begun`), and those of them that are sent to again because the result
 * of the last attempt is unknown (`resent`).
 */
export function beginningsOf(plans: readonly Plan[]): { begun: RecipientKey[]; resent: Resent[] } {
  return {
    begun: plans.flatMap(({ email, conversations, simulated, obstructed }) => {
      // Waiting for the sending domain counts as an attempt.
      const hindered = obstructed.map(({ recipient }) => recipient)
      const begun = [...simulated, ...hindered, ...conversations.flatMap(({ recipients }) => recipients)]
      return begun.map(({ position }) => ({ emailId: email.id, position }))
    }),
    resent: plans.flatMap(({ email, conversations }) =>
      conversations
        .flatMap(({ recipients }) => recipients)
        .filter(({ isAnswerLost }) => isAnswerLost)
        .map(({ position, status }) => ({ emailId: email.id, position, detail: detailOfResent(status) })),
    ),
  }
}

/** Returns the recipients that wait for the servers of their domain, each with the time of its next look. */
export function blockedOf(plans: readonly Plan[]): WaitingRecipient[] {
  return plans.flatMap(({ email, waiting }) =>
    waiting.flatMap(({ unusable, recipients }) =>
      recipients.map(({ position }) => ({ emailId: email.id, position, nextAt: unusable.until })),
    ),
  )
}

const senderDied = 'The service stopped while it was sending, and whether the server took the message is not known.'

function detailOfResent(status: DueRecipient['status']): string {
  const why = status === 'sending' ? senderDied : 'Whether the server took the message the last time is not known.'
  return `${why} It is sent again with the same Message-ID, so the recipient may get it twice.`
}

/** Returns whether an email has work to do now. */
export function isBegun({ conversations, simulated, withheld, canceled, lost, obstructed }: Plan): boolean {
  return [conversations, simulated, withheld, canceled, lost, obstructed].some(({ length }) => length > 0)
}

/**
 * Returns facts about recipients that wait for the mail servers of their domain: one when they begin to wait, and one
 * when their 72 hours are over. Not used with a single destination: the operator has to repair that.
 */
export function factsOfWaiting({ email, waiting }: Plan, at: Date): RecipientFact[] {
  return waiting.flatMap(({ unusable: { reason, reply, host }, recipients }) =>
    recipients
      .filter(
        ({ status, triedSince }) => status === 'queued' || (triedSince !== null && isOutOfPatience(triedSince, at)),
      )
      .map(({ position }) => ({ kind: 'waiting' as const, reason, reply, host, emailId: email.id, position, at })),
  )
}

/** Returns the facts that need no mail server: simulated, withheld, canceled, lost and obstructed recipients. */
export function factsAtOnce(plan: Plan, at: Date): RecipientFact[] {
  const { email, simulated, withheld, canceled, lost, obstructed } = plan
  const keyOf = ({ position }: Pick<DueRecipient, 'position'>) => ({ emailId: email.id, position, at })
  return [
    ...simulated.flatMap((recipient) => play({ ...recipient, emailId: email.id }, at)),
    ...withheld.map(({ withheld: { withheldFor, reason }, ...recipient }) =>
      // A recipient that may already have the message has failed: "suppressed" would say that nothing was sent.
      recipient.mayHaveIt
        ? { kind: 'failed' as const, reason, ...keyOf(recipient) }
        : { kind: 'suppressed' as const, withheldFor, reason, ...keyOf(recipient) },
    ),
    ...canceled.map((recipient) => ({
      // As for a withheld recipient.
      kind: recipient.mayHaveIt ? ('failed' as const) : ('canceled' as const),
      reason: `The campaign was canceled${recipient.mayHaveIt ? ' before the email was sent again. Whether the server took it before is not known: the recipient may have it.' : ' before the email was sent.'}`,
      ...keyOf(recipient),
    })),
    ...lost.map((recipient) => ({
      kind: 'lost' as const,
      reason: `${senderDied} The message is sent again unless the campaign is canceled.`,
      ...keyOf(recipient),
    })),
    ...factsOfObstacles(email, obstructed, at),
  ]
}

/** Returns the facts for recipients that cannot be sent to because of the sending domain or unusable links. */
export function factsOfObstacles(
  { id: emailId }: DueEmail,
  obstructed: readonly Obstructed[],
  at: Date,
): RecipientFact[] {
  return obstructed.map(({ recipient: { position, status }, obstacle: { kind, reason } }) => {
    if (kind === 'failed') return { kind, reason, emailId, position, at }
    const unknown = status === 'sending'
    const why = unknown ? `${senderDied} ${reason}` : reason
    return { kind, reason: why, reply: null, host: null, unknown, emailId, position, at }
  })
}

/** Returns when to look again at an email without work to do now; null: no recipient waits. */
export function nextLook({ email, parkedAt, waiting: waitingFor }: Plan, parkedUntil: Date): Date | null {
  const waiting = email.recipients.filter(({ status }) => isWaiting(status))
  if (waiting.length === 0) return null
  const times = waiting.flatMap(({ due, nextAttemptAt }) => (due || nextAttemptAt === null ? [] : [nextAttemptAt]))
  times.push(...waitingFor.map(({ unusable }) => unusable.until))
  const isWaitingOnly = parkedAt.length === 0 && waitingFor.length > 0
  if (parkedAt.length > 0 || (times.length < waiting.length && !isWaitingOnly)) times.push(parkedUntil)
  return new Date(Math.min(...times.map((time) => time.getTime())))
}

function isWithheld(recipient: DueRecipient): recipient is WithheldRecipient {
  return recipient.withheld !== null
}
