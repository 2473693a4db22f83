import { simulatorDomain } from '../../contract/simulator.ts'
import type {
  EmailRecipientsTable,
  RecipientStatus,
  SuppressionsTable,
  WithheldFor,
} from '../database/tables/emails.ts'
import type { NewEvent } from '../outbox/append.ts'
import { isWaiting } from './email-status.ts'
import type { RecipientFact } from './recipient-facts.ts'
import { isOutOfPatience, nextAttemptAt } from './retry-schedule.ts'

/** The fields of a recipient that can change. */
export type RecipientState = {
  status: RecipientStatus
  attemptCount: number
  firstAttemptAt: Date | null
  nextAttemptAt: Date | null
  reason: string | null
  withheldFor: WithheldFor | null
  delayedAt: Date | null
  acceptedAt: Date | null
  deliveredAt: Date | null
  openedAt: Date | null
  clickedAt: Date | null
  complainedAt: Date | null
}

/** The recipient, with the fields of the email that events contain. */
export type RecipientOfEmail = Pick<EmailRecipientsTable, 'address' | 'domain'> & { emailId: string; subject: string }

/** One entry in the timeline of an email. */
export type TimelineEntry = { type: string; detail: string | null; reply: string | null; host: string | null }

/** The consequences of a fact. */
export type Transition = {
  state: RecipientState
  timeline: readonly TimelineEntry[]
  events: readonly NewEvent[]
  /** The reason to add the address to the suppression list; null: it is not added. */
  suppress: SuppressionsTable['reason'] | null
}

const knownByNotification = 'The server took the message: a notification says so.'

/** Timeline texts for notifications of success that do not confirm arrival in the mailbox. Source: RFC 3464 §2.3.3. */
const meanings = {
  delivered: null,
  relayed: 'It was passed on to a server that does not tell whether it is delivered.',
  expanded: 'It was passed on to the addresses of a list.',
} as const

/**
 * Returns what a fact changes for a recipient; null: nothing, for example when it is repeated or outdated.
 * A message that a server has accepted never becomes waiting again, and a recipient in a final state is not restarted.
 *
 * @param random from 0 to below 1, for the jitter of retries
 */
export function transition(
  recipient: RecipientOfEmail,
  state: RecipientState,
  fact: RecipientFact,
  random: number,
): Transition | null {
  const at = fact.at.toISOString()
  const about = { emailId: recipient.emailId, to: recipient.address, subject: recipient.subject }
  const ended = { nextAttemptAt: null }
  const none = { events: [], suppress: null }
  const sent: NewEvent = { type: 'email.sent', data: { ...about, sentAt: at } }
  const delivered: NewEvent = { type: 'email.delivered', data: { ...about, deliveredAt: at } }

  switch (fact.kind) {
    case 'accepted': {
      if (state.acceptedAt !== null) return null
      const entry = { detail: null, reply: fact.reply, host: fact.host }
      // A bounce notification can arrive before the reply of the server is stored.
      if (!isWaiting(state.status)) {
        const timeline = [{ type: 'sent', ...entry }]
        return { state: { ...state, acceptedAt: fact.at }, timeline, events: [sent], suppress: null }
      }
      const taken = { ...state, ...ended, reason: null, acceptedAt: fact.at }
      if (!fact.final) {
        const timeline = [{ type: 'sent', ...entry }]
        return { state: { ...taken, status: 'accepted' }, timeline, events: [sent], suppress: null }
      }
      return {
        state: { ...taken, status: 'delivered', deliveredAt: fact.at },
        timeline: [{ type: 'delivered', ...entry }],
        events: [sent, delivered],
        suppress: null,
      }
    }
    case 'delivered':
    case 'relayed':
    case 'expanded': {
      if (state.status !== 'accepted' && !isWaiting(state.status)) return null
      // The notification can arrive before the reply of the relay is stored, or that reply was lost.
      const isNews = state.acceptedAt === null
      const before = { type: 'sent', detail: knownByNotification, reply: null, host: null }
      const entry = { type: fact.kind, detail: meanings[fact.kind], reply: fact.reply, host: fact.host }
      const taken = { ...state, ...ended, reason: null, acceptedAt: state.acceptedAt ?? fact.at }
      const isDelivered = fact.kind === 'delivered'
      return {
        state: isDelivered ? { ...taken, status: 'delivered', deliveredAt: fact.at } : { ...taken, status: 'accepted' },
        timeline: isNews ? [before, entry] : [entry],
        events: [...(isNews ? [sent] : []), ...(isDelivered ? [delivered] : [])],
        suppress: null,
      }
    }
    case 'deferred': {
      // Recorded once per attempt: a repeated fact finds the recipient no longer in `sending`.
      if (state.status !== 'sending') return null
      const { reason, reply, host } = fact
      // If the message is sent again later, the timeline gets an entry then.
      const timeline = [{ type: fact.unknown ? 'unknown' : 'deferred', detail: reason, reply, host }]
      const first = state.firstAttemptAt ?? fact.at
      const next = nextAttemptAt({ attempts: state.attemptCount, firstAttemptAt: first, now: fact.at }, random)
      if (next === null) return givenUp(reasonAtEnd(fact), timeline)
      return {
        state: {
          ...state,
          status: 'deferred',
          nextAttemptAt: next,
          reason: reply ?? reason,
          delayedAt: state.delayedAt ?? fact.at,
        },
        timeline,
        // The event is sent once, however often the recipient is deferred.
        events: state.delayedAt === null ? [delayedEvent(reply ?? reason)] : [],
        suppress: null,
      }
    }
    case 'lost': {
      // As for a deferred one.
      if (state.status !== 'sending') return null
      const { reason } = fact
      return {
        // Due at once and not given up: the first look after the pause sends it again, also when the 72 hours are over,
        // if a server of its domain can be used.
        state: { ...state, status: 'deferred', nextAttemptAt: fact.at, reason, delayedAt: state.delayedAt ?? fact.at },
        timeline: [{ type: 'unknown', detail: reason, reply: null, host: null }],
        events: state.delayedAt === null ? [delayedEvent(reason)] : [],
        suppress: null,
      }
    }
    case 'waiting': {
      if (!isWaiting(state.status)) return null
      const { reason, reply, host } = fact
      // The attempt just begun did not reach a server: it does not count, and the 72 hours do not start with it.
      const attempts = state.status === 'sending' ? state.attemptCount - 1 : state.attemptCount
      const since = (attempts > 0 ? state.firstAttemptAt : null) ?? state.delayedAt ?? fact.at
      if (isOutOfPatience(since, fact.at)) return givenUp(unusableAtEnd(reply ?? reason), [])
      // Recorded once, however often the recipient is looked at again.
      if (state.delayedAt !== null && state.reason === (reply ?? reason)) return null
      const isFirst = state.delayedAt === null
      return {
        // A recipient in `sending` is reset by the worker that began it.
        state: {
          ...state,
          status: state.status === 'queued' ? 'deferred' : state.status,
          reason: reply ?? reason,
          delayedAt: state.delayedAt ?? fact.at,
        },
        timeline: isFirst ? [{ type: 'deferred', detail: reason, reply, host }] : [],
        events: isFirst ? [delayedEvent(reply ?? reason)] : [],
        suppress: null,
      }
    }
    case 'delayed': {
      if (state.status !== 'accepted' || state.delayedAt !== null) return null
      const { reason, reply, host } = fact
      return {
        state: { ...state, delayedAt: fact.at },
        timeline: [{ type: 'delayed', detail: reason, reply, host }],
        events: [delayedEvent(reply ?? reason)],
        suppress: null,
      }
    }
    case 'bounced': {
      if (!isWaiting(state.status) && state.status !== 'accepted' && state.status !== 'delivered') return null
      const { bounceType, reason, reply, host } = fact
      return {
        state: { ...state, ...ended, status: 'bounced', reason: reply ?? reason },
        timeline: [{ type: 'bounced', detail: reason, reply, host }],
        events: [
          { type: 'email.bounced', data: { ...about, bouncedAt: at, bounceType, reason, diagnosticCode: reply } },
        ],
        suppress: bounceType === 'hard' ? lasting('hard_bounce') : null,
      }
    }
    case 'failed':
      return isWaiting(state.status) ? givenUp(fact.reason, []) : null
    case 'suppressed': {
      if (!isWaiting(state.status)) return null
      return {
        state: { ...state, ...ended, status: 'suppressed', reason: fact.reason, withheldFor: fact.withheldFor },
        timeline: [{ type: 'suppressed', detail: fact.reason, reply: null, host: null }],
        events: [{ type: 'email.failed', data: { ...about, failedAt: at, reason: fact.reason } }],
        suppress: null,
      }
    }
    case 'canceled': {
      if (!isWaiting(state.status)) return null
      return {
        ...none,
        state: { ...state, ...ended, status: 'canceled', reason: fact.reason },
        timeline: [{ type: 'canceled', detail: fact.reason, reply: null, host: null }],
      }
    }
    case 'complained': {
      if (state.complainedAt !== null) return null
      return {
        state: { ...state, ...ended, status: 'complained', reason: null, complainedAt: fact.at },
        timeline: [{ type: 'complained', detail: fact.feedbackType, reply: null, host: null }],
        events: [{ type: 'email.complained', data: { ...about, complainedAt: at, feedbackType: fact.feedbackType } }],
        suppress: fact.isDoubtful ? null : lasting('complaint'),
      }
    }
    case 'opened': {
      const { userAgent, ipAddress, automated } = fact
      return {
        state: { ...state, openedAt: state.openedAt ?? fact.at },
        timeline: state.openedAt === null ? [visit('opened', null)] : [],
        events: [{ type: 'email.opened', data: { ...about, openedAt: at, userAgent, ipAddress, automated } }],
        suppress: null,
      }
    }
    case 'clicked': {
      const { link, userAgent, ipAddress, automated } = fact
      return {
        state: { ...state, clickedAt: state.clickedAt ?? fact.at },
        timeline: state.clickedAt === null ? [visit('clicked', link)] : [],
        events: [{ type: 'email.clicked', data: { ...about, clickedAt: at, link, userAgent, ipAddress, automated } }],
        suppress: null,
      }
    }
  }

  function givenUp(reason: string, before: readonly TimelineEntry[]): Transition {
    return {
      ...none,
      state: { ...state, ...ended, status: 'failed', reason },
      timeline: [...before, { type: 'failed', detail: reason, reply: null, host: null }],
      events: [{ type: 'email.failed', data: { ...about, failedAt: at, reason } }],
    }
  }

  function delayedEvent(reason: string): NewEvent {
    return { type: 'email.delivery_delayed', data: { ...about, delayedAt: at, reason } }
  }

  function visit(type: string, detail: string | null): TimelineEntry {
    return { type, detail, reply: null, host: null }
  }

  /** Returns the reason to suppress the address; null for the simulator, whose results must be repeatable. */
  function lasting(reason: SuppressionsTable['reason']): SuppressionsTable['reason'] | null {
    return recipient.domain === simulatorDomain ? null : reason
  }
}

function unusableAtEnd(last: string): string {
  return `Given up after 72 hours: no mail server of the domain could be used. The last failure: ${last}`
}

function reasonAtEnd({ reason, reply, unknown }: Extract<RecipientFact, { kind: 'deferred' }>): string {
  if (!unknown) return `Given up after 72 hours. The last answer: ${reply ?? reason}`
  return `Given up after 72 hours. What became of the last attempt is not known, so the recipient may have it: ${reason}`
}
