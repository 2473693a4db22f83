/**
 * Something that happened to one recipient of an email, wherever it was learned: in an SMTP conversation,
 * from a notification that came back, from a browser, or played by the simulator.
 */
export type RecipientFact = {
  emailId: string
  /** Of the recipient, from 0. */
  position: number
  at: Date
} & FactKind

type FactKind =
  /** The server has taken it: `final` where it is the recipient's own. */
  | { kind: 'accepted'; final: boolean; reply: string | null; host: string | null }
  /** A notification says that it reached the mailbox. */
  | { kind: 'delivered'; reply: string | null; host: string | null }
  /** A notification says that it was passed on, to a server that tells nothing more or to a list of addresses. */
  | { kind: 'relayed' | 'expanded'; reply: string | null; host: string | null }
  /** Not now. It is tried again, unless 72 h are over. */
  | { kind: 'deferred'; reason: string; reply: string | null; host: string | null; unknown: boolean }
  /** No server of its domain can be used. It waits, unless 72 h are over, and that is no attempt. */
  | { kind: 'waiting'; reason: string; reply: string | null; host: string | null }
  /** A relay says that it is late; nothing is to be done here. */
  | { kind: 'delayed'; reason: string; reply: string | null; host: string | null }
  | { kind: 'bounced'; bounceType: 'hard' | 'soft'; reason: string; reply: string | null; host: string | null }
  /** Given up by us. */
  | { kind: 'failed'; reason: string }
  /** Not written to: the address is on the suppression list. */
  | { kind: 'suppressed'; reason: string }
  /** `isDoubtful`: any recipient of the email could have sent the report, so it does not suppress the address. */
  | { kind: 'complained'; feedbackType: string; isDoubtful?: boolean }
  | ({ kind: 'opened' } & Visitor)
  | ({ kind: 'clicked'; link: string } & Visitor)

/** Who fetched a pixel or followed a link. */
export type Visitor = {
  userAgent: string | null
  ipAddress: string | null
  /** Whether it looks like a machine's doing. */
  automated: boolean
}
