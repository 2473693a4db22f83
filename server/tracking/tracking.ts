import type { RecipientFact, Visitor } from '../email-delivery/outcomes.ts'
import type { Clock } from '../lib/clock.ts'
import { isWebLink } from '../message/links.ts'
import type { MailTokens, UnsubscribeRef } from '../message/tokens.ts'
import { type Fetch, isAutomated } from './automated-visits.ts'

/** That somebody looked at an email or followed a link in it. */
export type Visit = Extract<RecipientFact, { kind: 'opened' | 'clicked' }>

/** Who asks for a pixel or a link. Null: it is a request that only looks, such as HEAD. */
export type Asking = Omit<Fetch, 'kind'> | null

/** What the links in emails do. */
export type MailLinks = {
  /** The pixel was asked for. Nothing with a token that is not ours. */
  opened(token: string, asking: Asking): void
  /** Where a link leads; null: the token is not ours. */
  clicked(token: string, asking: Asking): string | null
  /** Whether an unsubscribe link is ours. Changes nothing. */
  isUnsubscribe(token: string): boolean
  /** Unsubscribes whom the link was made for, once. False: the token is not ours, or its account is gone. */
  unsubscribe(token: string): Promise<boolean>
}

export type MailLinksOptions = {
  tokens: MailTokens
  clock: Clock
  /** Takes a visit to be recorded later, and returns at once. */
  record: (visit: Visit) => void
  /** Unsubscribes a person; nothing for one who is. False: there is no such account any more. */
  unsubscribe: (from: UnsubscribeRef) => Promise<boolean>
}

/** Of what a browser says of itself. Characters. */
const maxUserAgentLength = 500

export function createMailLinks({ tokens, clock, record, unsubscribe }: MailLinksOptions): MailLinks {
  /** By token. Asked for a thousand times at once, a link has one of them done, and all hear of it. */
  const underWay = new Map<string, Promise<boolean>>()

  return {
    opened(token, asking) {
      const recipient = tokens.readPixel(token)
      if (recipient === null || asking === null) return
      record({ kind: 'opened', ...recipient, at: clock.now(), ...visitorOf('opened', asking) })
    },
    clicked(token, asking) {
      const click = tokens.readClick(token)
      // Only such links are signed. Looked at again all the same: this is where a redirect is made.
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
