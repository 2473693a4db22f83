import type { RecipientFact, Visitor } from '../email-delivery/recipient-facts.ts'
import type { Clock } from '../lib/clock.ts'
import { isWebLink } from '../message/links.ts'
import type { MailTokens, UnsubscribeRef } from '../message/mail-tokens.ts'
import { type Fetch, isAutomated } from './automated-visits.ts'

/** An open of an email or a click on a link in it. */
export type Visit = Extract<RecipientFact, { kind: 'opened' | 'clicked' }>

/** The client of a request for a pixel or a link. Null: the request is not counted, such as HEAD. */
export type Asking = Omit<Fetch, 'kind'> | null

/** The actions of the pixels and links in emails. */
export type MailLinks = {
  /** Records an open. Does nothing for an invalid token. */
  opened(token: string, asking: Asking): void
  /** Records a click and returns the target of the link; null: the token is invalid. */
  clicked(token: string, asking: Asking): string | null
  /** Returns whether the token of an unsubscribe link is valid. Changes nothing. */
  isUnsubscribe(token: string): boolean
  /**
   * Unsubscribes the recipient of the link. Concurrent calls are coalesced. False: the token is invalid, or the account
   * was deleted.
   */
  unsubscribe(token: string): Promise<boolean>
}

export type MailLinksOptions = {
  tokens: MailTokens
  clock: Clock
  /** Queues a visit to be stored later, and returns at once. */
  record: (visit: Visit) => void
  /** Unsubscribes a person. Does nothing if they are unsubscribed already. False: the account was deleted. */
  unsubscribe: (from: UnsubscribeRef) => Promise<boolean>
}

/** Maximum characters of a stored user agent. */
const maxUserAgentLength = 500

export function createMailLinks({ tokens, clock, record, unsubscribe }: MailLinksOptions): MailLinks {
  /** Running unsubscribe calls by token: concurrent requests for one link share one call. */
  const underWay = new Map<string, Promise<boolean>>()

  return {
    opened(token, asking) {
      const recipient = tokens.readPixel(token)
      if (recipient === null || asking === null) return
      record({ kind: 'opened', ...recipient, at: clock.now(), ...visitorOf('opened', asking) })
    },
    clicked(token, asking) {
      const click = tokens.readClick(token)
      // Only web links get tokens. This is checked again, because the caller redirects to the link.
      if (click === null || !isWebLink(click.link)) return null
      if (asking !== null) record({ kind: 'clicked', ...click, at: clock.now(), ...visitorOf('clicked', asking) })
      return click.link
    },
    isUnsubscribe: (token) => tokens.readUnsubscribe(token) !== null,
    unsubscribe(token) {
      const from = tokens.readUnsubscribe(token)
      if (from === null) return Promise.resolve(false)
      const doing = underWay.get(token) ?? unsubscribe(from).finally(() => underWay.delete(token))
      underWay.set(token, doing)
      return doing
    },
  }
}

function visitorOf(kind: Fetch['kind'], { userAgent, ipAddress, prefetch }: Omit<Fetch, 'kind'>): Visitor {
  return {
    userAgent: userAgent?.slice(0, maxUserAgentLength) ?? null,
    ipAddress,
    automated: isAutomated({ kind, userAgent, ipAddress, prefetch }),
  }
}
