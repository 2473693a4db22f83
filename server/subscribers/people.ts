import type { GivenProperties } from '../../contract/contact-properties.ts'
import type { Mode } from '../../contract/mode.ts'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import type { Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { addressKey } from '../message/address.ts'
import type { NewEvent, Outbox } from '../outbox/append.ts'
import { DomainError, liveKeyNeeded } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { type SubscriberPatch, subscriberChange } from './change.ts'
import { changeMemberships } from './contacts.ts'
import { changedProperties } from './properties.ts'
import {
  hasConfirmedContact,
  hasUnsubscribed,
  insertSubscriber,
  lockSubscriber,
  type SubscriberRow,
  updateSubscriber,
} from './queries.ts'
import { guardUnsubscribing } from './unsubscribing.ts'

/*
 * Changes of people that other features use too, since contacts are people. Lock order: the row of a person before the
 * rows of their contacts.
 */

export type PeopleDependencies = { clock: Clock; outbox: Outbox }

export type Person = SubscriberRow

export type NewPerson = {
  email: string
  firstName?: string | null | undefined
  lastName?: string | null | undefined
  properties?: GivenProperties | undefined
}

/**
 * Adds a person and emits `subscriber.added`. Returns undefined when the account already has the address. Throws
 * `rule_violation` as `changedProperties`.
 */
export async function addPerson(
  trx: Trx,
  { clock, outbox }: PeopleDependencies,
  scope: Scope,
  { email, firstName = null, lastName = null, properties: given }: NewPerson,
): Promise<Person | undefined> {
  const at = clock.now()
  const id = newId('subscriber', at)
  const { accountId } = scope
  const properties = await changedProperties(trx, accountId, { before: {}, change: given })
  const person = await insertSubscriber(trx, { id, accountId, email, firstName, lastName, properties, at })
  if (person !== undefined) await outbox.append(trx, scope, [personAdded(person)])
  return person
}

/** Returns the event for a person who was added. */
export function personAdded({ id, email, status }: Pick<Person, 'id' | 'email' | 'status'>): NewEvent {
  return { type: 'subscriber.added', data: { subscriberId: id, email, status } }
}

export type PersonChange = {
  patch: Omit<SubscriberPatch, 'properties'> & { properties?: GivenProperties | undefined }
  contact?: { audienceId: string; status: SubscriptionStatus }
  mode: Mode
}

/** Locks a person for a change until the transaction ends. */
export async function lockPerson(trx: Trx, accountId: string, id: string): Promise<Person | undefined> {
  return lockSubscriber(trx, accountId, id, 'change')
}

/**
 * Changes a locked person and their contacts. Emits `subscriber.unsubscribed` when the status becomes `unsubscribed`,
 * and `contact.updated` for each contact that changes. Does nothing without a difference. Throws `authentication_error`
 * when a test key would make an unsubscribed person active, or change the address of a person who unsubscribed from
 * everything, from an audience or from a topic, or who is active in an audience with double opt-in. Throws
 * `rule_violation` as `changedProperties`.
 *
 * @param mode Mode of the request that causes the change.
 * @param contact New status of one contact, which the same event reports.
 */
export async function changePerson(
  trx: Trx,
  dependencies: PeopleDependencies,
  person: Person,
  { patch, contact, mode }: PersonChange,
): Promise<Person> {
  const properties = await changedProperties(trx, person.account_id, {
    before: person.properties,
    change: patch.properties,
  })
  const { after, changed } = subscriberChange(
    {
      email: person.email,
      firstName: person.first_name,
      lastName: person.last_name,
      status: person.status,
      properties: person.properties,
    },
    { ...patch, properties },
  )
  const isMadeActive = changed.includes('status') && after.status === 'active'
  guardUnsubscribing('Making a subscriber active again', { mode, isUnsubscribed: isMadeActive })
  if (mode === 'test' && addressKey(after.email) !== addressKey(person.email)) {
    // Otherwise the old address could be added again, without the unsubscribed status.
    const isUnsubscribed = await hasUnsubscribed(trx, person)
    guardUnsubscribing('Changing the address of a subscriber who unsubscribed', { mode, isUnsubscribed })
    // Otherwise live email of the audience would go to an address whose owner never confirmed it.
    if (await hasConfirmedContact(trx, person)) {
      throw liveKeyNeeded('Changing the address of a subscriber who is active in an audience with double opt-in')
    }
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

/** Returns the error for an address that another person of the account has. */
export function addressTaken(email: string): DomainError {
  return new DomainError('conflict', `There is a subscriber with the address "${email}" in this account already.`)
}
