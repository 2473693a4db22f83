import type { Clock } from '../../clock.ts'
import type { Db } from '../../database/connection.ts'
import type { Fact } from '../facts.ts'
import { deleteOlderMessages } from '../mailbox/queries.ts'
import type { CopyRef, MailTokens } from '../message/tokens.ts'
import type { ReceivedMessage } from '../receiving/listener.ts'
import { factsOf, saysNothing } from './facts.ts'
import type { InboundKind } from './metrics.ts'
import { findEmail, insertInbound } from './queries.ts'
import { type Notification, type OriginalMessage, readNotification } from './read.ts'

export type ReceiveOptions = {
  db: Db
  clock: Clock
  tokens: Pick<MailTokens, 'copy' | 'readReturnPath' | 'readCopy' | 'readUnsubscribe'>
  /** What makes two addresses the same. */
  keyOf: (address: string) => string
  /** Writes down what was learned; resolves when it is committed. */
  record: (facts: readonly Fact[]) => Promise<void>
  onMessage: (kind: InboundKind) => void
}

/** Messages that were not understood, kept of each account. */
export const keptPerAccount = 1_000
/** What is kept of one. */
export const keptBytes = 2 ** 20

/**
 * Answers a function that takes a message to a return path, and resolves when all that follows from it is
 * committed. Nothing comes twice of a message that comes twice.
 */
export function createReceiver(options: ReceiveOptions): (message: ReceivedMessage) => Promise<void> {
  const { db, clock, tokens, onMessage } = options

  return async (message) => {
    const notification = readNotification(message.content)
    if (saysNothing(notification)) return onMessage('auto-reply')
    const original = 'original' in notification ? notification.original : noOriginal
    for (const copy of copiesOf(message, original)) await take(message, notification, copy)
  }

  /** What the message that came back says is more than where it came back to: it can have been forwarded. */
  function copiesOf({ recipients }: ReceivedMessage, { emailToken }: OriginalMessage): CopyRef[] {
    const inside = emailToken === null ? null : tokens.readCopy(emailToken)
    if (inside !== null) return [inside]
    const copies = recipients.map(tokens.readReturnPath).filter((copy) => copy !== null)
    return [...new Map(copies.map((copy) => [tokens.copy(copy), copy])).values()]
  }

  async function take(message: ReceivedMessage, notification: Notification, copy: CopyRef): Promise<void> {
    const { emailId } = copy
    const email = await findEmail(db, emailId)
    if (email === undefined) return onMessage('gone')
    const at = clock.now()
    const keep = async (reason: string) => {
      await insertInbound(db, { accountId: email.accountId, emailId, reason, message, at }, keptBytes)
      await deleteOlderMessages(db, 'inbound_messages', email.accountId, keptPerAccount)
    }
    if (notification.kind === 'unreadable') {
      await keep(notification.reason)
      return onMessage('unreadable')
    }
    const facts = factsOf(notification, email, {
      at,
      keyOf: options.keyOf,
      position: copy.position ?? positionIn(notification, emailId),
    })
    if (facts.length === 0) {
      await keep('It names none of the recipients of the email.')
      return onMessage('unmatched')
    }
    await options.record(facts)
    onMessage(notification.kind)
  }

  /** Whose copy came back, by the link in it. */
  function positionIn(notification: Notification, emailId: string): number | null {
    if (!('original' in notification) || notification.original.unsubscribeToken === null) return null
    const recipient = tokens.readUnsubscribe(notification.original.unsubscribeToken)
    return recipient?.emailId === emailId ? recipient.position : null
  }
}

const noOriginal: OriginalMessage = { emailToken: null, unsubscribeToken: null }
