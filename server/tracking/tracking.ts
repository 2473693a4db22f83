import type { Brand } from '../../contract/brand.ts'
import type { RecipientFact, Visitor } from '../email-delivery/recipient-facts.ts'
import type { Clock } from '../lib/clock.ts'
import { isWebLink } from '../message/links.ts'
import type { MailTokens, UnsubscribeRef } from '../message/mail-tokens.ts'
import { type Fetch, isAutomated } from './automated-visits.ts'

/** An open of an email or a click on a link in it. */
export type Visit = Extract<RecipientFact, { kind: 'opened' | 'clicked' }>

/** The client of a request for a pixel or a link. Null: the request is not counted, such as HEAD. */
export type Asking = Omit<Fetch, 'kind'> | null

/** The content of the page of an unsubscribe link. */
export type PreferencesPage = {
  brand: Brand
  /** The name of the topic that the button leaves. Null: it leaves everything. */
  topic: string | null
  /** Null: the address is no subscriber's, and there is nothing to choose. */
  preferences: {
    firstName: string | null
    lastName: string | null
    isUnsubscribed: boolean
    topics: readonly { id: string; name: string; description: string | null; isSubscribed: boolean }[]
  } | null
}

/** A change that a person makes on the page of an unsubscribe link. */
export type PreferencesChange = {
  firstName: string | null
  lastName: string | null
  /** The topics that were shown. Others stay as they are. */
  shown: ReadonlySet<string>
  /** Those of them that are wanted. */
  wanted: ReadonlySet<string>
}

/** The actions of the pixels and links in emails. */
export type MailLinks = {
  /** Records an open. Does nothing for an invalid token. */
  opened(token: string, asking: Asking): void
  /** Records a click and returns the target of the link; null: the token is invalid. */
  clicked(token: string, asking: Asking): string | null
  /** Returns what the page of an unsubscribe link shows. Changes nothing. Null: as `unsubscribe` returns false. */
  preferences(token: string): Promise<PreferencesPage | null>
  /** Saves what the page changes. Returns what it shows then; `too often`: for a person, in this process. */
  savePreferences(token: string, change: PreferencesChange): Promise<PreferencesPage | null | 'too often'>
  /**
   * Unsubscribes the recipient of the link. Concurrent calls are coalesced. False: the token is invalid, or the account
   * was deleted.
   *
   * @param from `everything`: also where the link is of one topic. Default: what the link leaves.
   */
  unsubscribe(token: string, from?: 'everything'): Promise<boolean>
}

export type MailLinksOptions = {
  tokens: MailTokens
  clock: Clock
  /** Queues a visit to be stored later, and returns at once. */
  record: (visit: Visit) => void
  /** Unsubscribes a person. Does nothing if they are unsubscribed already. False: the account was deleted. */
  unsubscribe: (from: UnsubscribeRef) => Promise<boolean>
  /** Returns what the page of a link shows. Null: the account was deleted. */
  preferences: (from: UnsubscribeRef) => Promise<PreferencesPage | null>
  savePreferences: (from: UnsubscribeRef, change: PreferencesChange) => Promise<void>
  /** Counts a change for a person. False: there were too many. */
  takeChange: (person: string) => boolean
}

/** Maximum characters of a stored user agent. */
const maxUserAgentLength = 500

export function createMailLinks(options: MailLinksOptions): MailLinks {
  const { tokens, clock, record, unsubscribe } = options
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
    async preferences(token) {
      const from = tokens.readUnsubscribe(token)
      return from === null ? null : options.preferences(from)
    },
    async savePreferences(token, change) {
      const from = tokens.readUnsubscribe(token)
      if (from === null) return null
      if (!options.takeChange(`${from.accountId} ${from.address.toLowerCase()}`)) return 'too often'
      await options.savePreferences(from, change)
      return options.preferences(from)
    },
    unsubscribe(token, what) {
      const read = tokens.readUnsubscribe(token)
      if (read === null) return Promise.resolve(false)
      const from = what === 'everything' ? { ...read, topicId: undefined } : read
      const key = `${token} ${what}`
      const doing = underWay.get(key) ?? unsubscribe(from).finally(() => underWay.delete(key))
      underWay.set(key, doing)
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
