import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { UnsubscribeRef } from '../message/mail-tokens.ts'
import { DomainError } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'
import { suppressUnsubscribed } from '../suppressions/unsubscribed.ts'
import { findPersonOfLink } from './link-person.ts'
import { lockPerson, type PeopleDependencies } from './people.ts'
import { findModeOfEmail } from './queries.ts'
import type { SubscriberService } from './service.ts'
import { chooseTopics } from './topics.ts'

export type OneClickMeans = PeopleDependencies & {
  subscribers: Pick<SubscriberService, 'unsubscribe'>
  /** Counts, for statistics, that the recipient of an email has unsubscribed with its link. Once for each recipient. */
  count: (trx: Trx, of: Pick<UnsubscribeRef, 'accountId' | 'emailId' | 'position'> & { at: Date }) => Promise<void>
}

/**
 * Unsubscribes an address by the link of an email, however old the email is. A link with a topic leaves only that topic,
 * while the person and the topic exist. Any other link, and such a link later, leaves everything: the person that
 * the link belongs to (`findPersonOfLink`), if there is one, is unsubscribed as over the API, and the address that the
 * email went to gets no more emails to audiences. A second call changes nothing. The events have the mode of the email,
 * or `live` when the email was deleted. Returns false when the account no longer exists.
 *
 * Source: RFC 8058 §3.2.
 */
export async function unsubscribeByLink(
  handle: Handle,
  means: OneClickMeans,
  { accountId, address, emailId, position, topicId }: UnsubscribeRef,
): Promise<boolean> {
  const { clock, subscribers } = means
  return inTransaction(handle, async (trx) => {
    await means.count(trx, { accountId, emailId, position, at: clock.now() })
    const scope = { accountId, mode: (await findModeOfEmail(trx, accountId, emailId)) ?? 'live' }
    const person = await findPersonOfLink(trx, { accountId, address, emailId })
    if (topicId !== undefined && (await leaveTopic(trx, means, scope, { subscriberId: person?.id, topicId })))
      return true
    if (person !== undefined) await unlessGone(subscribers.unsubscribe(trx, scope, person.id))
    return suppressUnsubscribed(trx, { accountId, address, emailId, at: clock.now() })
  })
}

/** Leaves one topic. Returns false when there is no such person or topic. */
async function leaveTopic(
  trx: Trx,
  means: PeopleDependencies,
  { accountId, mode }: Scope,
  { subscriberId, topicId }: { subscriberId: string | undefined; topicId: string },
): Promise<boolean> {
  const person = subscriberId === undefined ? undefined : await lockPerson(trx, accountId, subscriberId)
  if (person === undefined) return false
  const missing = await chooseTopics(trx, means, person, { choices: [{ topicId, subscribed: false }], mode })
  return missing.size === 0
}

/** Ignores `not_found`: a subscriber who was deleted meanwhile needs no change. */
async function unlessGone(unsubscribing: Promise<unknown>): Promise<void> {
  try {
    await unsubscribing
  } catch (error) {
    if (!(error instanceof DomainError) || error.code !== 'not_found') throw error
  }
}
