import { keptInboundBytes } from '../../contract/inbound-limits.ts'
import type { Mode } from '../../contract/mode.ts'
import type { Db } from '../database/connection.ts'
import type { RecipientFact } from '../email-delivery/recipient-facts.ts'
import type { Clock } from '../lib/clock.ts'
import type { CopyRef, MailTokens } from '../message/mail-tokens.ts'
import type { ReceivedMessage } from '../smtp-listener/listener.ts'
import { deleteOlderInbound, insertInbound } from '../stored-messages/inbound.ts'
import type { InboundKind } from './metrics.ts'
import { factsOf, saysNothing } from './notification-facts.ts'
import { findNotifiedEmail } from './queries.ts'
import { type Notification, type OriginalMessage, readNotification } from './read.ts'

export type ReceiveOptions = {
  db: Db
  clock: Clock
  tokens: Pick<MailTokens, 'copy' | 'readReturnPath' | 'readCopy' | 'readUnsubscribe'>
  /** Returns the key by which addresses are compared. */
  keyOf: (address: string) => string
  /** Stores facts. Resolves when they are committed. */
  record: (facts: readonly RecipientFact[]) => Promise<void>
  onMessage: (kind: InboundKind) => void
}

/** Messages that were not understood, kept for each account. */
export const keptPerAccount = 1_000
/** Messages kept that belong to no account. */
export const keptForOperator = 100

/**
 * Returns a function that processes a message to a return path or a role address. It resolves when all changes are
 * committed. A notification that arrives twice changes its recipients only once.
 */
export function createReceiver(options: ReceiveOptions): (message: ReceivedMessage) => Promise<void> {
  const { db, clock, tokens, onMessage } = options

  return async (message) => {
    const notification = readNotification(message.content)
    if (saysNothing(notification)) return onMessage('auto-reply')
    const original = 'original' in notification ? notification.original : noOriginal
    const copies = copiesOf(message, original)
    if (copies.length === 0) await takeUnknown(message, notification)
    for (const copy of copies) await take(message, notification, copy)
  }

  /** Returns the copies that a message is about. Tokens inside it come before its recipient: it may be forwarded. */
  function copiesOf({ recipients }: ReceivedMessage, { copyToken, returnPath }: OriginalMessage): CopyRef[] {
    const inside =
      (copyToken === null ? null : tokens.readCopy(copyToken)) ??
      (returnPath === null ? null : tokens.readReturnPath(returnPath))
    if (inside !== null) return [inside]
    const copies = recipients.map(tokens.readReturnPath).filter((copy) => copy !== null)
    return [...new Map(copies.map((copy) => [tokens.copy(copy), copy])).values()]
  }

  async function take(message: ReceivedMessage, notification: Notification, copy: CopyRef): Promise<void> {
    const { emailId } = copy
    const email = await findNotifiedEmail(db, emailId)
    const owner: Owner = { emailId, accountId: email?.accountId ?? null, mode: email?.mode ?? 'live' }
    if (notification.kind === 'unreadable') await keep(message, owner, notification.reason)
    if (email === undefined) return onMessage('gone')
    if (notification.kind === 'unreadable') return onMessage('unreadable')
    const facts = factsOf(notification, email, {
      at: clock.now(),
      keyOf: options.keyOf,
      position: copy.position ?? positionIn(notification, emailId),
    })
    if (facts.length === 0) {
      await keep(message, owner, 'It names none of the recipients of the email.')
      return onMessage('unmatched')
    }
    await options.record(facts)
    onMessage(notification.kind)
  }

  async function takeUnknown(message: ReceivedMessage, notification: Notification): Promise<void> {
    const isUnreadable = notification.kind === 'unreadable'
    const reason = isUnreadable ? notification.reason : 'Nothing in it tells which email it is about.'
    await keep(message, { emailId: null, accountId: null, mode: 'live' }, reason)
    onMessage(isUnreadable ? 'unreadable' : 'unmatched')
  }

  async function keep(message: ReceivedMessage, owner: Owner, reason: string): Promise<void> {
    await insertInbound(db, { ...owner, reason, message, at: clock.now() }, keptInboundBytes)
    const number = owner.accountId === null ? keptForOperator : keptPerAccount
    await deleteOlderInbound(db, owner.accountId, number)
  }

  /** Returns the recipient whose copy came back, by its unsubscribe link; null: not known. */
  function positionIn(notification: Notification, emailId: string): number | null {
    if (!('original' in notification) || notification.original.unsubscribeToken === null) return null
    const recipient = tokens.readUnsubscribe(notification.original.unsubscribeToken)
    return recipient?.emailId === emailId ? recipient.position : null
  }
}

/** The owner of a kept message. Without an account, it is kept for the operator. */
type Owner = { emailId: string | null; accountId: string | null; mode: Mode }

const noOriginal: OriginalMessage = { copyToken: null, returnPath: null, unsubscribeToken: null }
