import type { EmailStatus, RecipientStatus } from '../database/tables/emails.ts'

const waiting: ReadonlySet<RecipientStatus> = new Set(['queued', 'sending', 'deferred'])
/** Nothing was tried yet, or will be. */
const untouched: ReadonlySet<RecipientStatus> = new Set(['queued', 'suppressed', 'validated', 'canceled'])

/** Whether something is still to be done for a recipient. */
export function isWaiting(status: RecipientStatus): boolean {
  return waiting.has(status)
}

/**
 * The status of an email from those of its recipients, of which there is at least one. While anything is to
 * be done it is `queued` or, once begun, `sending`; then what became of the luckiest: `delivered` only if all
 * were that were written to, else `sent` if any server took it.
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
