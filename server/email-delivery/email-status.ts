import type { EmailStatus, RecipientStatus } from '../database/tables/emails.ts'

const waiting: ReadonlySet<RecipientStatus> = new Set(['queued', 'sending', 'deferred'])
/** Statuses of recipients that nothing was tried for. */
const untouched: ReadonlySet<RecipientStatus> = new Set(['queued', 'suppressed', 'validated', 'canceled'])

/** Returns whether a recipient still has work to do. */
export function isWaiting(status: RecipientStatus): boolean {
  return waiting.has(status)
}

/**
 * Returns the status of an email from the statuses of its recipients (at least one). While a recipient has work to
 * do it is `queued` or, once sending has begun, `sending`. Then the best result counts: `delivered` if every recipient
 * that was sent to has the message, else `sent` if any server accepted it.
 */
export function statusOfEmail(recipients: readonly RecipientStatus[]): EmailStatus {
  const has = (status: RecipientStatus) => recipients.includes(status)
  if (recipients.some(isWaiting)) return recipients.every((status) => untouched.has(status)) ? 'queued' : 'sending'
  const written = recipients.filter((status) => status !== 'suppressed' && status !== 'validated')
  if (written.length > 0 && written.every((status) => status === 'delivered' || status === 'complained')) {
    return 'delivered'
  }
  if (has('accepted') || has('delivered') || has('complained')) return 'sent'
  if (has('bounced')) return 'bounced'
  if (has('failed')) return 'failed'
  if (has('canceled')) return 'canceled'
  return has('validated') ? 'validated' : 'suppressed'
}
