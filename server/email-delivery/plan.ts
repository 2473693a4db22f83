import { simulatorDomain } from '../../contract/simulator.ts'
import type { Unusable } from '../smtp/transport.ts'
import { isWaiting } from './email-status.ts'
import type { RecipientFact } from './outcomes.ts'
import { isOutOfPatience } from './retry-pauses.ts'
import { type EmailDomain, refusalOf, type SendRefusal } from './send-refusal.ts'
import type { DueEmail, DueRecipient, RecipientKey, Resent } from './sending-state.ts'
import { play } from './simulator.ts'

/** One conversation to be held: these recipients of one email, at one destination. */
export type Planned = {
  email: DueEmail
  destination: string
  /** Whether the copy is for the one recipient there is. */
  personal: boolean
  recipients: readonly DueRecipient[]
  /** Gives its place at the destination to another; to be called when the transport has it, or it is over. */
  leave: () => void
}

type Obstructed = { recipient: DueRecipient; obstacle: SendRefusal }

/** What is to be done with a claimed email. */
export type Plan = {
  email: DueEmail
  conversations: readonly Planned[]
  /** Recipients that only play. */
  simulated: readonly DueRecipient[]
  /** Recipients nothing may be sent to any more. */
  withheld: readonly DueRecipient[]
  /** Recipients nothing is sent to because of the domain it would be sent from. */
  obstructed: readonly Obstructed[]
  /** The destinations at which there was no room, so that due recipients were left for another time. */
  parkedAt: readonly string[]
  /** Those that cannot be used now, and the due recipients that wait for them. */
  waiting: readonly BlockedRecipients[]
}

export type BlockedRecipients = { unusable: Unusable; recipients: readonly DueRecipient[] }

/** How recipients are brought together, and how much may be begun. */
export type Routes = {
  destinationOf(domain: string): string
  /** Takes a place at a destination, if there is one. Answers how to leave it. */
  take(destination: string): (() => void) | null
  /** What a destination waits for where there is no place; null: for one. */
  unusable(destination: string): Unusable | null
}

/** How an email is to be sent. */
export type Manner = {
  /** Whether each recipient gets a copy of their own. */
  personal: boolean
  /** What keeps it from being sent, beside its domain; null: nothing. */
  obstacle: SendRefusal | null
}

/**
 * What to do for an email: all due recipients of one destination in one conversation, or, where each copy is
 * its recipient's own, one conversation each.
 */
export function planOf(email: DueEmail, { personal, obstacle }: Manner, routes: Routes): Plan {
  const due = email.recipients.filter((recipient) => recipient.due)
  const simulated = due.filter(({ domain }) => domain === simulatorDomain)
  const withheld = due.filter((recipient) => recipient.withheld !== null)
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
    if (leave !== null) return [{ ...group, email, personal, leave }]
    const unusable = routes.unusable(group.destination)
    if (unusable === null) parkedAt.add(group.destination)
    else waiting.push({ unusable, recipients: group.recipients })
    return []
  })
  return { email, conversations, simulated, withheld, obstructed, parkedAt: [...parkedAt], waiting }
}

/** All of the recipients, or none: what keeps them from being sent to is the domain. Null: it is gone. */
export function obstructedOf(domain: EmailDomain | null, recipients: readonly DueRecipient[]): Obstructed[] {
  return recipients.flatMap((recipient) => {
    const obstacle = refusalOf(domain, recipient)
    return obstacle === null ? [] : [{ recipient, obstacle }]
  })
}

/** The recipients plans begin with; of these, those that are sent to again since an answer is not known. */
export function beginningsOf(plans: readonly Plan[]): { begun: RecipientKey[]; resent: Resent[] } {
  return {
    begun: plans.flatMap(({ email, conversations, simulated, obstructed }) => {
      // To wait for the domain is an attempt too.
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

const senderDied = 'The service stopped while it was sending, and whether the server took the message is not known.'

function detailOfResent(status: DueRecipient['status']): string {
  const why = status === 'sending' ? senderDied : 'Whether the server took the message the last time is not known.'
  return `${why} It is sent again with the same Message-ID, so the recipient may get it twice.`
}

/** Whether anything is to be done for an email now. */
export function isBegun({ conversations, simulated, withheld, obstructed }: Plan): boolean {
  return conversations.length + simulated.length + withheld.length + obstructed.length > 0
}

/**
 * What is told of recipients that wait for servers of their domain: that they do, once, and in the end that they are
 * given up. Of those that wait for the one way out there is nothing is told: that is the operator's to mend.
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

/** What is known of an email without any server: what the simulator plays, and who is not written to. */
export function factsAtOnce({ email, simulated, withheld, obstructed }: Plan, at: Date): RecipientFact[] {
  const keyOf = ({ position }: DueRecipient) => ({ emailId: email.id, position, at })
  return [
    ...simulated.flatMap((recipient) => play({ ...recipient, emailId: email.id }, at)),
    ...withheld.map((recipient) => ({
      // Who may have it is given up: it was not kept from them.
      kind: recipient.mayHaveIt ? ('failed' as const) : ('suppressed' as const),
      reason: recipient.withheld ?? '',
      ...keyOf(recipient),
    })),
    ...factsOfObstacles(email, obstructed, at),
  ]
}

/** What it means for recipients that nothing is sent to them because of the domain. */
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

/** When an email nothing is begun for is looked at again; null: never, nothing waits. */
export function nextLook({ email, parkedAt, waiting: waitingFor }: Plan, parkedUntil: Date): Date | null {
  const waiting = email.recipients.filter(({ status }) => isWaiting(status))
  if (waiting.length === 0) return null
  const times = waiting.flatMap(({ due, nextAttemptAt }) => (due || nextAttemptAt === null ? [] : [nextAttemptAt]))
  times.push(...waitingFor.map(({ unusable }) => unusable.until))
  const isWaitingOnly = parkedAt.length === 0 && waitingFor.length > 0
  if (parkedAt.length > 0 || (times.length < waiting.length && !isWaitingOnly)) times.push(parkedUntil)
  return new Date(Math.min(...times.map((time) => time.getTime())))
}
