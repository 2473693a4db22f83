import { type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { UnsubscribeRef } from '../message/tokens.ts'
import { DomainError } from '../shared/errors.ts'
import { suppressUnsubscribed } from '../suppressions/unsubscribed.ts'
import { findModeOfEmail } from './queries.ts'
import type { SubscriberService } from './service.ts'

export type OneClickMeans = { clock: Clock; subscribers: Pick<SubscriberService, 'list' | 'unsubscribe'> }

/**
 * What the unsubscribe link of an email does, however old the email is: the person, if the account has one of
 * that address, is unsubscribed from everything as over the API, and no email to an audience goes to the
 * address any more. Once more, it changes nothing. Its events have the mode of the email, or are live where that
 * is gone. False: the account is gone.
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

/** Who was deleted just now gets no more email either. */
async function unlessGone(unsubscribing: Promise<unknown>): Promise<void> {
  try {
    await unsubscribing
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'not_found') throw error
  }
}
