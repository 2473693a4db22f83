import type { RecipientFact } from '../email-delivery/recipient-facts.ts'
import { classifyFailure, replyTextOf } from './classify-report.ts'
import type { Notification } from './read.ts'
import type { RecipientReport } from './read-dsn.ts'

/** The email of a notification. */
export type NotifiedEmail = {
  id: string
  recipients: readonly { position: number; addressKey: string }[]
}

export type FactOptions = {
  at: Date
  /** Returns the key by which addresses are compared. */
  keyOf: (address: string) => string
  /** The recipient whose copy came back, if that is certain: reports about others are ignored then. */
  position: number | null
}

/** Feedback types that are not complaints: not spam after all, or a failed authentication. RFC 6650 §5, RFC 6591. */
const noComplaints: readonly string[] = ['not-spam', 'auth-failure']

/**
 * Returns the facts in a notification about the recipients of an email. Reports about unknown addresses are ignored,
 * unless the copy or the email has only one recipient: then they are about that recipient.
 *
 * If several recipients share a return path, each of them can forge a report about another. Such a report does not
 * suppress an address: its bounce is soft, and its complaint is doubtful.
 */
export function factsOf(notification: Notification, email: NotifiedEmail, options: FactOptions): RecipientFact[] {
  const { at, keyOf } = options
  const known = email.recipients.filter(({ position }) => options.position === null || position === options.position)
  const positionOf = (addresses: readonly string[]): number | null => {
    const keys = addresses.map(keyOf)
    const named = known.find(({ addressKey }) => keys.includes(addressKey))
    const [only] = known
    return named?.position ?? (known.length === 1 && only !== undefined ? only.position : null)
  }
  const isDoubtful = known.length > 1
  switch (notification.kind) {
    case 'dsn':
      return notification.recipients.flatMap((report) => {
        const position = positionOf(report.addresses)
        return position === null ? [] : [{ emailId: email.id, position, at, ...factOf(report, isDoubtful) }]
      })
    case 'arf': {
      const { feedbackType, recipients } = notification
      if (noComplaints.includes(feedbackType)) return []
      const position = positionOf(recipients)
      if (position === null) return []
      return [{ emailId: email.id, position, at, kind: 'complained', feedbackType, ...(isDoubtful && { isDoubtful }) }]
    }
    default:
      return []
  }
}

/** Returns whether a notification was understood and requires no action. */
export function saysNothing(notification: Notification): boolean {
  return (
    notification.kind === 'auto-reply' ||
    (notification.kind === 'arf' && noComplaints.includes(notification.feedbackType))
  )
}

function factOf(report: RecipientReport, isDoubtful: boolean) {
  const { host } = report
  switch (report.action) {
    case 'failed':
      return {
        kind: 'bounced',
        ...classifyFailure(report),
        ...(isDoubtful && { bounceType: 'soft' as const }),
        host,
      } as const
    case 'delayed':
      return { kind: 'delayed', reason: 'A mail server is late.', reply: replyTextOf(report), host } as const
    case 'delivered':
    case 'relayed':
    case 'expanded':
      return { kind: report.action, reply: replyTextOf(report), host } as const
  }
}
