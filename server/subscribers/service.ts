import type { Page } from '../../contract/pagination.ts'
import type { CreateSubscriber, Subscriber, SubscriberListQuery, UpdateSubscriber } from '../../contract/subscribers.ts'
import { record } from '../audit-log/record.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import { brokenRule, notFound } from '../shared/errors.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { removeUnsubscribe } from '../suppressions/unsubscribed.ts'
import { removeMemberships } from './contacts.ts'
import { addPerson, addressTaken, changePerson, lockPerson, type PeopleDependencies } from './people.ts'
import { propertiesShower, type ShowProperties } from './properties.ts'
import {
  deleteSubscriber,
  findSubscriber,
  hasUnsubscribed,
  lockSubscriber,
  type SubscriberRow,
  selectSubscribers,
} from './queries.ts'
import { guardUnsubscribing } from './unsubscribing.ts'

/** Use cases for people, whom both modes share. Throws DomainErrors. Every call is limited to one account. */
export type SubscriberService = {
  /**
   * Adds a person and emits `subscriber.added`. Throws `conflict` for an existing address, in any letter case, and
   * `rule_violation` for properties that are not declared or of another type.
   */
  create(handle: Handle, scope: Scope, subscriber: CreateSubscriber): Promise<Subscriber>
  /** Returns people, newest first: see `selectSubscribers`. */
  list(handle: Handle, accountId: string, query: SubscriberListQuery): Promise<Page<Subscriber>>
  get(handle: Handle, accountId: string, id: string): Promise<Subscriber>
  /**
   * Changes a person. Emits `contact.updated` for each contact that changes. The status `unsubscribed` also does what
   * `unsubscribe` does. The status `active` leaves the contacts as they are, and removes what an unsubscribe link has
   * put on the suppression list. Throws `rule_violation` for properties as `create`, and `authentication_error` when a test key would undo an unsubscription, or change
   * the address of a person who has unsubscribed.
   */
  update(handle: Handle, scope: AuthoredScope, id: string, patch: UpdateSubscriber): Promise<Subscriber>
  /**
   * Deletes a person. Emits `contact.deleted` for each audience, then `subscriber.removed`. Throws
   * `authentication_error` with a test key for a person who has unsubscribed from everything, an audience or a topic.
   */
  delete(handle: Handle, scope: AuthoredScope, id: string): Promise<void>
  /**
   * Unsubscribes a person from everything. Emits `subscriber.unsubscribed`, then `contact.updated` for each contact
   * that was active. Does nothing when the person is already unsubscribed.
   */
  unsubscribe(handle: Handle, scope: Scope, id: string): Promise<Subscriber>
}

export function createSubscriberService(dependencies: PeopleDependencies): SubscriberService {
  const { clock } = dependencies

  async function shown(handle: Handle, person: SubscriberRow): Promise<Subscriber> {
    return toSubscriber(person, await propertiesShower(handle, person.account_id, [person]))
  }

  async function change(trx: Trx, scope: Scope, id: string, patch: UpdateSubscriber): Promise<SubscriberRow> {
    const person = await lockPerson(trx, scope.accountId, id)
    if (person === undefined) throw notFound('subscriber', id)
    const { status } = patch
    if (status === 'pending') throw brokenRule('body.status', 'must be active or unsubscribed')
    return changePerson(trx, dependencies, person, { patch: { ...patch, status }, mode: scope.mode })
  }

  async function lift(
    trx: Trx,
    { accountId, author, mode }: AuthoredScope,
    { id, email }: SubscriberRow,
  ): Promise<void> {
    const lifted = await removeUnsubscribe(trx, accountId, email)
    if (lifted === null) return
    guardUnsubscribing('Taking back an unsubscribing', { mode, isUnsubscribed: true })
    const target = { type: 'suppression', id: lifted, name: null } as const
    const details = { reason: 'unsubscribe', subscriberId: id }
    await record(trx, { accountId, at: clock.now(), author, action: 'suppression.deleted', target, details })
  }

  return {
    async create(handle, scope, subscriber) {
      const added = await inTransaction(handle, (trx) => addPerson(trx, dependencies, scope, subscriber))
      if (added === undefined) throw addressTaken(subscriber.email)
      // They were declared when they were written.
      return toSubscriber(added, ({ properties }) => ({ ...properties }))
    },
    async list(handle, accountId, { search, email, status, limit, cursor }) {
      const after = decodeCursor('subscriber', cursor)
      const page = { search, email, status, after, limit: limit + 1 }
      const { rows, lookedTo } = await selectSubscribers(handle, accountId, page)
      const show = await propertiesShower(handle, accountId, rows)
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: (row) => toSubscriber(row, show), lookedTo })
    },
    async get(handle, accountId, id) {
      const row = await findSubscriber(handle, accountId, id)
      if (row === undefined) throw notFound('subscriber', id)
      return shown(handle, row)
    },
    async update(handle, scope, id, patch) {
      return inTransaction(handle, async (trx) => {
        const changed = await change(trx, scope, id, patch)
        // Also for a person who was already active: the request says that emails should reach them.
        if (patch.status === 'active') await lift(trx, scope, changed)
        return shown(trx, changed)
      })
    },
    async delete(handle, scope, id) {
      await inTransaction(handle, async (trx) => {
        const person = await lockSubscriber(trx, scope.accountId, id, 'delete')
        if (person === undefined) throw notFound('subscriber', id)
        const isUnsubscribed = scope.mode === 'test' && (await hasUnsubscribed(trx, person))
        guardUnsubscribing('Deleting a subscriber who unsubscribed', { mode: scope.mode, isUnsubscribed })
        await removeMemberships(trx, dependencies, person, scope.mode)
        await deleteSubscriber(trx, scope.accountId, id)
        await dependencies.outbox.append(trx, scope, [
          { type: 'subscriber.removed', data: { subscriberId: id, email: person.email, status: person.status } },
        ])
        const { accountId, author } = scope
        // Neither the address nor the names: they are to be forgotten.
        const target = { type: 'subscriber', id, name: null } as const
        await record(trx, { accountId, at: clock.now(), author, action: 'subscriber.deleted', target })
      })
    },
    async unsubscribe(handle, scope, id) {
      return inTransaction(handle, async (trx) => shown(trx, await change(trx, scope, id, { status: 'unsubscribed' })))
    },
  }
}

function toSubscriber(row: SubscriberRow, show: ShowProperties): Subscriber {
  return {
    id: row.id,
    email: row.email,
    firstName: row.first_name,
    lastName: row.last_name,
    status: row.status,
    properties: show(row),
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
