import { type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { UnsubscribeRef } from '../message/mail-tokens.ts'
import { DomainError } from '../shared/errors.ts'
import { suppressUnsubscribed } from '../suppressions/unsubscribed.ts'
import { findModeOfEmail } from './queries.ts'
import type { SubscriberService } from './service.ts'

export type OneClickMeans = { clock: Clock; subscribers: Pick<SubscriberService, 'list' | 'unsubscribe'> }

/**
 * Unsubscribes an address by the link of an email, however old the email is. The subscriber with this address, if there
 * is one, is unsubscribed from everything, as over the API. The address gets no more emails to audiences. A second call
 * changes nothing. The events have the mode of the email, or `live` when the email was deleted. Returns false when the
 * account no longer exists.
 *
 * Source: RFC 8058 §3.2.
 */
export async function unsubscribeByLink(
  handle: Handle,
  { clock, subscribers }: OneClickMeans,
  { accountId, address, emailId }: UnsubscribeRef,
): Promise<boolean> {
  return inTransaction(handle, async (trx) => {
    const scope = { accountId, mode: (await findModeOfEmail(trx, accountId, emailId)) ?? 'live' }
    const { data } = await subscribers.list(trx, accountId, { email: address, limit: 1 })
    for (const { id } of data) await unlessGone(subscribers.unsubscribe(trx, scope, id))
    return suppressUnsubscribed(trx, { accountId, address, emailId, at: clock.now() })
  })
}

/** Ignores `not_found`: a subscriber who was deleted meanwhile needs no change. */
async function unlessGone(unsubscribing: Promise<unknown>): Promise<void> {
  try {
    await unsubscribing
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'not_found') throw error
  }
}
