import type { Mode } from '../../contract/mode.ts'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import type { Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { addressKey } from '../message/address.ts'
import type { NewEvent, Outbox } from '../outbox/append.ts'
import { DomainError } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { type SubscriberPatch, subscriberChange } from './change.ts'
import { changeMemberships } from './memberships.ts'
import { hasUnsubscribed, insertSubscriber, lockSubscriber, type SubscriberRow, updateSubscriber } from './queries.ts'
import { guardUnsubscribing } from './unsubscribing.ts'

/*
 * What may be done to a person from outside this feature too: contacts are people. A person's row is
 * always locked before their contacts.
 */

export type PeopleDependencies = { clock: Clock; outbox: Outbox }

export type Person = SubscriberRow

export type NewPerson = {
  email: string
  firstName?: string | null | undefined
  lastName?: string | null | undefined
}

/** Adds a person and emits `subscriber.added`. Undefined when the account has the address already. */
export async function addPerson(
  trx: Trx,
  { clock, outbox }: PeopleDependencies,
  scope: Scope,
  { email, firstName = null, lastName = null }: NewPerson,
): Promise<Person | undefined> {
  const at = clock.now()
  const id = newId('subscriber', at)
  const person = await insertSubscriber(trx, { id, accountId: scope.accountId, email, firstName, lastName, at })
  if (person !== undefined) await outbox.append(trx, scope, [personAdded(person)])
  return person
}

/** What tells that a person was added. */
export function personAdded({ id, email, status }: Pick<Person, 'id' | 'email' | 'status'>): NewEvent {
  return { type: 'subscriber.added', data: { subscriberId: id, email, status } }
}

export type PersonChange = {
  patch: SubscriberPatch
  contact?: { audienceId: string; status: SubscriptionStatus }
  mode: Mode
}

/** Finds a person whom this transaction is about to change, and keeps everybody else from doing so. */
export async function lockPerson(trx: Trx, accountId: string, id: string): Promise<Person | undefined> {
  return lockSubscriber(trx, accountId, id, 'change')
}

/**
 * Changes a locked person, with all that follows: `subscriber.unsubscribed` when they become
 * unsubscribed, and `contact.updated` for each audience where something changed by it. Nothing
 * happens when nothing really changes. A test key can neither make anybody active again who had unsubscribed, nor
 * give somebody who unsubscribed, from everything or from an audience, another address: `authentication_error`.
 *
 * @param mode Of what causes the change.
 * @param contact The status one contact shall get by the same request, told in the same event.
 */
export async function changePerson(
  trx: Trx,
  dependencies: PeopleDependencies,
  person: Person,
  { patch, contact, mode }: PersonChange,
): Promise<Person> {
  const { after, changed } = subscriberChange(
    { email: person.email, firstName: person.first_name, lastName: person.last_name, status: person.status },
    patch,
  )
  const isMadeActive = changed.includes('status') && after.status === 'active'
  guardUnsubscribing('Making a subscriber active again', { mode, isUnsubscribed: isMadeActive })
  if (mode === 'test' && addressKey(after.email) !== addressKey(person.email)) {
    // The old address could be added anew, as one that never unsubscribed.
    const isUnsubscribed = await hasUnsubscribed(trx, person)
    guardUnsubscribing('Changing the address of a subscriber who unsubscribed', { mode, isUnsubscribed })
  }
  const updated =
    changed.length === 0 ? person : await updateSubscriber(trx, person.id, after, dependencies.clock.now())
  if (updated === 'taken') throw addressTaken(after.email)

  const unsubscribes = changed.includes('status') && after.status === 'unsubscribed'
  if (unsubscribes) {
    await dependencies.outbox.append(trx, { accountId: person.account_id, mode }, [
      {
        type: 'subscriber.unsubscribed',
        data: { subscriberId: person.id, email: updated.email, status: updated.status },
      },
    ])
  }
  const details = changed.filter((field) => field !== 'status')
  const everywhere = details.length > 0 || unsubscribes
  if (everywhere || contact !== undefined) {
    await changeMemberships(trx, dependencies, updated, {
      changed: details,
      statusOf: (membership) => {
        if (unsubscribes) return 'unsubscribed'
        return membership.audience_id === contact?.audienceId ? contact.status : membership.status
      },
      only: everywhere ? undefined : contact?.audienceId,
      mode,
    })
  }
  return updated
}

/** The refusal of an address another person of the account has. */
export function addressTaken(email: string): DomainError {
  return new DomainError('conflict', `There is a subscriber with the address "${email}" in this account already.`)
}
