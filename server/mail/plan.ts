import { simulatorDomain } from '../../contract/simulator.ts'
import type { DueEmail, DueRecipient, RecipientKey } from './begin.ts'
import { isWaiting } from './email-status.ts'
import type { Fact } from './facts.ts'
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

/** What is to be done with a claimed email. */
export type Plan = {
  email: DueEmail
  conversations: readonly Planned[]
  /** Recipients that only play. */
  simulated: readonly DueRecipient[]
  /** Recipients nothing may be sent to any more. */
  withheld: readonly DueRecipient[]
  /** Whether due recipients were left for another time, since there is no room at their destination. */
  parked: boolean
}

/** How recipients are brought together, and how much may be begun. */
export type Routes = {
  destinationOf(domain: string): string
  /** Takes a place at a destination, if there is one. Answers how to leave it. */
  take(destination: string): (() => void) | null
}

/**
 * What to do for an email: all due recipients of one destination in one conversation, or, where each copy is
 * its recipient's own, one conversation each.
 */
export function planOf(email: DueEmail, personal: boolean, routes: Routes): Plan {
  const due = email.recipients.filter((recipient) => recipient.due)
  const simulated = due.filter(({ domain }) => domain === simulatorDomain)
  const withheld = due.filter((recipient) => recipient.withheld !== null)
  const real = due.filter((recipient) => recipient.domain !== simulatorDomain && recipient.withheld === null)
  const together = [...Map.groupBy(real, ({ domain }) => routes.destinationOf(domain))]
  const groups = personal
    ? together.flatMap(([destination, members]) => members.map((one) => ({ destination, recipients: [one] })))
    : together.map(([destination, recipients]) => ({ destination, recipients }))
  const conversations = groups.flatMap((group) => {
    const leave = routes.take(group.destination)
    return leave === null ? [] : [{ ...group, email, personal, leave }]
  })
  return { email, conversations, simulated, withheld, parked: conversations.length < groups.length }
}

/** The recipients a plan begins with; of these, those whose sender had died. */
export function beginningsOf(plans: readonly Plan[]): { begun: RecipientKey[]; resent: RecipientKey[] } {
  const ones = plans.flatMap(({ email, conversations, simulated }) =>
    [...simulated, ...conversations.flatMap(({ recipients }) => recipients)].map((recipient) => ({
      key: { emailId: email.id, position: recipient.position },
      recipient,
    })),
  )
  return {
    begun: ones.map(({ key }) => key),
    // What the simulator plays is written down at once: nothing was sent.
    resent: ones
      .filter(({ recipient: { status, domain } }) => status === 'sending' && domain !== simulatorDomain)
      .map(({ key }) => key),
  }
}

/** Whether anything is to be done for an email now. */
export function isBegun({ conversations, simulated, withheld }: Plan): boolean {
  return conversations.length + simulated.length + withheld.length > 0
}

/** What is known of an email without any server: what the simulator plays, and who is not written to. */
export function factsAtOnce({ email, simulated, withheld }: Plan, at: Date): Fact[] {
  return [
    ...simulated.flatMap((recipient) => play({ ...recipient, emailId: email.id }, at)),
    ...withheld.map(({ position, withheld: reason }) => ({
      kind: 'suppressed' as const,
      reason: reason ?? '',
      emailId: email.id,
      position,
      at,
    })),
  ]
}

/** When an email nothing is begun for is looked at again; null: never, nothing waits. */
export function nextLook({ email, parked }: Plan, parkedUntil: Date): Date | null {
  const waiting = email.recipients.filter(({ status }) => isWaiting(status))
  if (waiting.length === 0) return null
  const times = waiting.flatMap(({ due, nextAttemptAt }) => (due || nextAttemptAt === null ? [] : [nextAttemptAt]))
  if (parked || times.length < waiting.length) times.push(parkedUntil)
  return new Date(Math.min(...times.map((time) => time.getTime())))
}
