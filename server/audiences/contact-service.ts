import type {
  AddContact,
  Contact,
  ContactConflict,
  ContactListQuery,
  SubscriberContact,
  UpdateContact,
} from '../../contract/contacts.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import { record } from '../audit-log/record.ts'
import { type Handle, inTransaction } from '../database/connection.ts'
import type { NewEvent } from '../outbox/append.ts'
import { brokenRule, DomainError, liveKeyNeeded, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { changePerson, lockPerson, personAdded } from '../subscribers/people.ts'
import { changedProperties, findProperties, propertiesShower, type ShowProperties } from '../subscribers/properties.ts'
import { guardUnsubscribing } from '../subscribers/unsubscribing.ts'
import { refusalOfAsking } from './confirmation.ts'
import { addContacts, type BatchMeans, type BatchResult } from './contact-batch.ts'
import { lockAudience } from './contact-batch-queries.ts'
import { exportContacts } from './contact-export.ts'
import {
  addContact,
  type ContactKey,
  type ContactRow,
  deleteContact,
  findContact,
  lockContact,
  markAsked,
  type SubscriberContactRow,
  selectContacts,
  selectContactsOf,
} from './contact-queries.ts'
import { findAudience } from './queries.ts'

export type { ContactKey } from './contact-queries.ts'

/** Use cases for contacts, which both modes share. Throws DomainErrors. Every call is limited to one account. */
export type ContactService = {
  /**
   * Adds a person to an audience. Emits `subscriber.added` if the person is new, then `contact.created`. Names and
   * properties are used for a new person only. A person who has unsubscribed from everything is added as `unsubscribed`. In
   * an audience that asks people to confirm, the contact is `pending`, and gets an email for that. Throws `conflict` when
   * the person is already in the audience, `rule_violation` for properties that are not declared or of another type, and
   * what `ConfirmationMailer.ask` throws.
   */
  add(handle: Handle, scope: Scope, audienceId: string, contact: AddContact): Promise<Contact>
  /** Adds many contacts in one transaction: see `addContacts`. Returns the result of each, in order. */
  addBatch(handle: Handle, scope: Scope, audienceId: string, batch: NewContacts): Promise<BatchResult[]>
  /** Returns all contacts of an audience as CSV, page by page: see `exportContacts`. Throws `not_found` at once. */
  exportCsv(handle: Handle, accountId: string, audienceId: string): Promise<AsyncGenerator<string>>
  /** Returns contacts, newest subscribers first: see `selectContacts`. */
  list(handle: Handle, accountId: string, audienceId: string, query: ContactListQuery): Promise<Page<Contact>>
  /** Returns the contacts of one person, newest audiences first. */
  listOfSubscriber(
    handle: Handle,
    accountId: string,
    subscriberId: string,
    query: PageQuery,
  ): Promise<Page<SubscriberContact>>
  get(handle: Handle, accountId: string, key: ContactKey): Promise<Contact>
  /**
   * Changes a contact. New names and properties change the person and emit `contact.updated` for all their audiences; the status
   * changes in this audience only. Emits nothing without a difference. Throws `subscriber_unsubscribed` for the status
   * `active` when the person has unsubscribed from everything, `rule_violation` for the status `pending`, and
   * `authentication_error` when a test key would make a contact active.
   */
  update(handle: Handle, scope: Scope, key: ContactKey, patch: UpdateContact): Promise<Contact>
  /**
   * Sends another email that asks a pending contact to confirm: see `confirmationLimits`. Throws `contact_not_pending`,
   * `confirmation_refused` and what `ConfirmationMailer.ask` throws.
   */
  askToConfirm(handle: Handle, scope: Scope, key: ContactKey): Promise<Contact>
  /**
   * Removes a contact and emits `contact.deleted`. The subscriber stays. Throws `authentication_error` when a test key
   * would remove a contact that has unsubscribed.
   */
  remove(handle: Handle, scope: AuthoredScope, key: ContactKey): Promise<void>
}

export type NewContacts = {
  contacts: readonly AddContact[]
  /** Default: `skip`. */
  conflict?: ContactConflict | undefined
  /** Of the new contacts. Default: `active`. */
  status?: SubscriptionStatus | undefined
}

export function createContactService(dependencies: BatchMeans): ContactService {
  const { clock, outbox, confirmations } = dependencies

  async function get(handle: Handle, accountId: string, key: ContactKey): Promise<Contact> {
    const row = await findContact(handle, accountId, key)
    if (row === undefined) throw noContact(key)
    return toContact(row, await propertiesShower(handle, accountId, [row]))
  }

  return {
    async add(handle, scope, audienceId, contact) {
      return inTransaction(handle, async (trx) => {
        const { accountId } = scope
        const at = clock.now()
        const subscriberId = newId('subscriber', at)
        const { email, firstName = null, lastName = null, properties: given } = contact
        const properties = await changedProperties(trx, accountId, { before: {}, change: given })
        const newcomer = { subscriberId, email, firstName, lastName, properties }
        const added = await addContact(trx, { accountId, audienceId, ...newcomer, at })
        if (added.outcome === 'no audience') throw notFound('audience', audienceId)
        const { person } = added
        if (added.outcome === 'on the list already') {
          throw new DomainError('conflict', `"${email}" is on the list already, as the contact "${person.id}".`)
        }
        const { id } = person
        const { status, audience, createdAt } = added
        const created: NewEvent = {
          type: 'contact.created',
          data: { subscriberId: id, audienceId, email: person.email, status },
        }
        await outbox.append(trx, scope, added.isNewPerson ? [personAdded(person), created] : [created])
        let asked: ReadonlySet<string> = new Set()
        if (status === 'pending' && audience.doubleOptIn !== null) {
          const asking = { id: audienceId, name: audience.name, doubleOptIn: audience.doubleOptIn }
          asked = await confirmations.ask(trx, scope, { audience: asking, people: [person], isBulk: false })
          await markAsked(trx, { accountId, audienceId }, asked, at)
        }
        const dates = { confirmation_sent_at: asked.has(id) ? at : null, created_at: createdAt, updated_at: createdAt }
        const row = { ...person, status, audience_id: audienceId, subscriber_id: id, ...dates }
        return toContact(row, await propertiesShower(trx, accountId, [row]))
      })
    },
    async addBatch(handle, scope, audienceId, { contacts, conflict = 'skip', status }) {
      const rows = contacts.map((contact) => ({ ...contact, status }))
      const results = await inTransaction(handle, (trx) =>
        addContacts(trx, dependencies, scope, { audienceId, rows, conflict }),
      )
      if (results === null) throw notFound('audience', audienceId)
      return results
    },
    async exportCsv(handle, accountId, audienceId) {
      const audience = await findAudience(handle, accountId, audienceId)
      if (audience === undefined) throw notFound('audience', audienceId)
      return exportContacts(handle, { accountId, audienceId, declared: await findProperties(handle, accountId) })
    },
    async list(handle, accountId, audienceId, { search, status, limit, cursor }) {
      const after = decodeCursor('subscriber', cursor)
      const audience = await findAudience(handle, accountId, audienceId)
      if (audience === undefined) throw notFound('audience', audienceId)
      const page = { audienceId, search, status, after, limit: limit + 1 }
      const { rows, lookedTo } = await selectContacts(handle, accountId, page)
      const show = await propertiesShower(handle, accountId, rows)
      const toItem = (row: ContactRow) => toContact(row, show)
      return pageOfRows(rows, { limit, idOf: (row) => row.subscriber_id, toItem, lookedTo })
    },
    async listOfSubscriber(handle, accountId, subscriberId, { limit, cursor }) {
      const after = decodeCursor('audience', cursor)
      const rows = await selectContactsOf(handle, accountId, { subscriberId, after, limit: limit + 1 })
      if (rows === undefined) throw notFound('subscriber', subscriberId)
      return pageOfRows(rows, { limit, idOf: (row) => row.audience_id, toItem: toSubscriberContact })
    },
    get,
    async update(handle, { accountId, mode }, key, { firstName, lastName, status, properties }) {
      return inTransaction(handle, async (trx) => {
        const person = await lockPerson(trx, accountId, key.subscriberId)
        if (person === undefined) throw noContact(key)
        const before = await get(trx, accountId, key)
        if (status === 'pending') {
          const message =
            'must be active or unsubscribed: a contact is pending from when it was added until the person confirms'
          throw brokenRule('body.status', message)
        }
        if (status === 'active' && before.status === 'pending' && mode === 'test') {
          throw liveKeyNeeded('Confirming a contact for the person')
        }
        if (status === 'active' && person.status === 'unsubscribed') {
          throw new DomainError(
            'subscriber_unsubscribed',
            `The subscriber "${person.id}" unsubscribed from everything. Set the status of the subscriber to "active" first.`,
          )
        }
        const isUnsubscribed = status === 'active' && before.status === 'unsubscribed'
        guardUnsubscribing('Making a contact active again', { mode, isUnsubscribed })
        await changePerson(trx, dependencies, person, {
          mode,
          patch: { firstName, lastName, properties },
          contact: { audienceId: key.audienceId, status: status ?? before.status },
        })
        return get(trx, accountId, key)
      })
    },
    async askToConfirm(handle, scope, key) {
      return inTransaction(handle, async (trx) => {
        const { accountId } = scope
        // The audience first, as where contacts are added.
        const audience = await lockAudience(trx, accountId, key.audienceId)
        const person = audience && (await lockPerson(trx, accountId, key.subscriberId))
        const before = person && (await lockContact(trx, accountId, key))
        if (before === undefined || audience === undefined || person === undefined) throw noContact(key)
        if (before.status !== 'pending') {
          const message = `The contact "${person.id}" is ${before.status}: only one that is pending is asked to confirm.`
          throw new DomainError('contact_not_pending', message)
        }
        const { name, double_opt_in: doubleOptIn } = audience
        if (doubleOptIn === null) throw asksNobodyNow(key.audienceId)
        const at = clock.now()
        const refusal = refusalOfAsking(before, at)
        if (refusal !== null) throw refusal
        const asking = { audience: { id: key.audienceId, name, doubleOptIn }, people: [person], isBulk: false }
        const asked = await confirmations.ask(trx, scope, asking)
        if (!asked.has(person.id)) throw suppressed(person.email)
        await markAsked(trx, { accountId, audienceId: key.audienceId }, asked, at)
        return get(trx, accountId, key)
      })
    },
    async remove(handle, scope, key) {
      await inTransaction(handle, async (trx) => {
        const status = await deleteContact(trx, scope.accountId, key)
        if (status === undefined) throw noContact(key)
        const isUnsubscribed = status === 'unsubscribed'
        guardUnsubscribing('Removing a contact that unsubscribed', { mode: scope.mode, isUnsubscribed })
        await outbox.append(trx, scope, [{ type: 'contact.deleted', data: key }])
        const { accountId, author } = scope
        const target = { type: 'contact', id: key.subscriberId, name: null } as const
        const details = { audienceId: key.audienceId }
        await record(trx, { accountId, at: clock.now(), author, action: 'contact.deleted', target, details })
      })
    },
  }
}

function asksNobodyNow(audienceId: string): DomainError {
  const message = `The audience "${audienceId}" asks nobody to confirm any more. Give it "doubleOptIn", or set the status of the contact once the person has confirmed in another way.`
  return new DomainError('confirmation_refused', message)
}

function suppressed(email: string): DomainError {
  const message = `"${email}" is on the suppression list, so nothing is sent to it. Take it off the list first.`
  return new DomainError('confirmation_refused', message)
}

function noContact({ audienceId, subscriberId }: ContactKey): DomainError {
  return new DomainError('not_found', `There is no contact "${subscriberId}" in the audience "${audienceId}".`)
}

/** Returns a contact as responses show it. */
export function toContact(row: ContactRow, show: ShowProperties): Contact {
  return {
    audienceId: row.audience_id,
    subscriberId: row.subscriber_id,
    email: row.email,
    firstName: row.first_name,
    lastName: row.last_name,
    status: row.status,
    properties: show(row),
    confirmationSentAt: row.confirmation_sent_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}

function toSubscriberContact(row: SubscriberContactRow): SubscriberContact {
  return {
    audienceId: row.audience_id,
    audienceName: row.audience_name,
    status: row.status,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
