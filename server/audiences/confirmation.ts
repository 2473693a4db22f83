import type { Handle, Trx } from '../database/connection.ts'
import type { DoubleOptIn } from '../database/tables/people.ts'
import { DomainError } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'

/*
 * Double opt-in: a contact that is added to an audience with `doubleOptIn` is `pending` until the person opens the link in
 * an email and confirms. The email is written in the transaction that adds the contact: there is never one without the other.
 */

/** How often a person is asked, and how long a link holds. */
export const confirmationLimits = {
  /** Emails to one contact in all. */
  emails: 5,
  /** Between two of them. */
  gapMs: 600_000,
  /** From when the email was made. */
  linkMs: 7 * 86_400_000,
  /**
   * How long a contact stays pending after the last email, or without one after it was added. It is longer than a link
   * holds: an expired link still finds its contact. A contact that is deleted and added again may get 5 emails again.
   */
  pendingMs: 30 * 86_400_000,
} as const

/** An audience that asks people to confirm. */
export type AskingAudience = { id: string; name: string; doubleOptIn: DoubleOptIn }

export type Asking = {
  audience: AskingAudience
  people: readonly { id: string; email: string }[]
  /** Whether the emails are sent behind those that are sent singly. */
  isBulk: boolean
}

/** Writes the emails that ask people to confirm. The room `confirmations` has it. */
export type ConfirmationMailer = {
  /** Returns why no email could be sent with these settings, or null. Paths begin with `body.doubleOptIn`. */
  judge(handle: Handle, scope: Scope, doubleOptIn: DoubleOptIn): Promise<DomainError | null>
  /**
   * Stores and queues one email to each person. Returns the ids of those who get one: an address on the suppression list
   * gets none, unless its owner left by a link and is added singly, and neither does one that no email can be written to.
   * Throws `domain_not_verified` and `public_url_needed` with a live key.
   */
  ask(trx: Trx, scope: Scope, asking: Asking): Promise<ReadonlySet<string>>
}

/** The emails that asked a contact to confirm before: how many, and when the last was. Null: there was none. */
export type AskedBefore = { count: number; at: Date | null }

/** Returns why a contact is not asked again now, or null. */
export function refusalOfAsking({ count, at }: AskedBefore, now: Date): DomainError | null {
  if (count >= confirmationLimits.emails) {
    const message = `The contact got ${count} emails that ask to confirm, which is the limit. Remove the contact, or set its status once the person has confirmed in another way.`
    return new DomainError('confirmation_refused', message)
  }
  const next = at === null ? 0 : at.getTime() + confirmationLimits.gapMs
  if (next <= now.getTime()) return null
  const message = `The contact was asked at ${at?.toISOString()}, less than 10 minutes ago. Try again at ${new Date(next).toISOString()}.`
  return new DomainError('confirmation_refused', message)
}
