import type { WithheldFor } from '../database/tables/emails.ts'

/**
 * Something that happened to one recipient of an email. Facts come from SMTP conversations, notifications that come
 * back, browsers that open links and pixels, and the simulator.
 */
export type RecipientFact = {
  emailId: string
  /** The index of the recipient in the email, from 0. */
  position: number
  at: Date
} & FactKind

type FactKind =
  /** A server accepted the message. `final`: it is the recipient's own server, not a relay. */
  | { kind: 'accepted'; final: boolean; reply: string | null; host: string | null }
  /** A notification says that the message reached the mailbox. */
  | { kind: 'delivered'; reply: string | null; host: string | null }
  /** A notification says that the message went on to a server without notifications, or to the addresses of a list. */
  | { kind: 'relayed' | 'expanded'; reply: string | null; host: string | null }
  /** Refused for now. It is tried again until the 72 hours are over. `unknown`: the server may have the message. */
  | { kind: 'deferred'; reason: string; reply: string | null; host: string | null; unknown: boolean }
  /** Its attempt ended with the process that began it, and its campaign is paused. The server may have the message. */
  | { kind: 'lost'; reason: string }
  /** No server of the domain can be used. The recipient waits up to 72 hours; this is not an attempt. */
  | { kind: 'waiting'; reason: string; reply: string | null; host: string | null }
  /** A relay says that the message is delayed. The relay goes on trying. */
  | { kind: 'delayed'; reason: string; reply: string | null; host: string | null }
  | { kind: 'bounced'; bounceType: 'hard' | 'soft'; reason: string; reply: string | null; host: string | null }
  /** This service gave up. */
  | { kind: 'failed'; reason: string }
  /** Not sent to: the address is suppressed, or the person left or unsubscribed. */
  | { kind: 'suppressed'; withheldFor: WithheldFor; reason: string }
  /** Not sent to: the campaign was canceled. */
  | { kind: 'canceled'; reason: string }
  /** `isDoubtful`: any recipient of the email could have sent the report, so it does not suppress the address. */
  | { kind: 'complained'; feedbackType: string; isDoubtful?: boolean }
  | ({ kind: 'opened' } & Visitor)
  | ({ kind: 'clicked'; link: string } & Visitor)

/** The client that fetched a pixel or followed a link. */
export type Visitor = {
  userAgent: string | null
  ipAddress: string | null
  /** True when the request looks automated. */
  automated: boolean
}
