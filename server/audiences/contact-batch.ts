import { setImmediate as nextTurn } from 'node:timers/promises'
import type { SubscriptionStatus } from '../../contract/subscribers.ts'
import type { Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewEvent, Outbox } from '../outbox/append.ts'
import { liveKeyNeeded } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { type ChangedField, subscriberChange } from '../subscribers/change.ts'
import { personAdded } from '../subscribers/people.ts'
import { holdProperties } from '../subscribers/properties.ts'
import { changeProperties, type DeclaredProperty } from '../subscribers/property-values.ts'
import { subscribeUndecided } from '../topics/choices.ts'
import type { ConfirmationMailer } from './confirmation.ts'
import {
  type BatchPerson,
  findSubscribed,
  insertContacts,
  insertPeople,
  type KnownPerson,
  lockAudience,
  lockPeople,
  touchContacts,
  unsubscribeContacts,
  updatePeople,
} from './contact-batch-queries.ts'
import { type BatchRow, type Conflict, type MergedRow, mergeRows } from './contact-batch-rows.ts'
import { markAsked } from './contact-queries.ts'

export type { BatchRow, Conflict } from './contact-batch-rows.ts'

export type ContactBatch = {
  audienceId: string
  rows: readonly BatchRow[]
  conflict: Conflict
  /**
   * Topics that the new contacts are subscribed to, and with `update` also those who were there; whatever they chose
   * before stays. One that is not there is passed over. Default: none.
   */
  topicIds?: readonly string[] | undefined
  /** Default: true. */
  emitsEvents?: boolean | undefined
}

/**
 * The outcome of a row. `created`: the person is in the audience now, and was not before. `updated`: they were in it,
 * and something changed. `unchanged`: they were in it, and nothing changed.
 */
export type BatchResult =
  | { outcome: 'created' | 'updated' | 'unchanged'; subscriberId: string }
  | { outcome: 'refused'; reason: string }

/** Events appended by one statement. PostgreSQL inserts them while the next ones are made. */
const eventsAtOnce = 250

export type BatchMeans = { clock: Clock; outbox: Outbox; confirmations: Pick<ConfirmationMailer, 'ask'> }

/**
 * Adds many contacts, or changes the people who are there, with a few statements. Returns the result of each row, in
 * order, or null when there is no such audience. Emits the events of adding and changing them one by one. A person
 * who unsubscribed stays unsubscribed. New contacts that are `pending` get an email to confirm. Throws then what
 * `ConfirmationMailer.ask` throws, and `authentication_error` when a test key adds people as `active` to an audience that
 * asks them.
 */
export async function addContacts(
  trx: Trx,
  { clock, outbox, confirmations }: BatchMeans,
  scope: Scope,
  { audienceId, rows, conflict, topicIds = [], emitsEvents = true }: ContactBatch,
): Promise<BatchResult[] | null> {
  const { accountId } = scope
  const audience = await lockAudience(trx, accountId, audienceId)
  if (audience === undefined) return null
  const { double_opt_in: doubleOptIn } = audience
  if (doubleOptIn !== null && scope.mode === 'test' && rows.some(({ status }) => status === 'active')) {
    throw liveKeyNeeded('Adding people as active to an audience with double opt-in')
  }
  const hasProperties = rows.some(({ properties }) => properties !== undefined)
  const declared = hasProperties ? await holdProperties(trx, accountId) : []
  const { people: merged, refused } = mergeRows(rows, { declared, conflict })
  const results = new Array<BatchResult>(rows.length)
  for (const { index, reason } of refused) results[index] = { outcome: 'refused', reason }
  const people = merged.filter((person) => {
    if (person.status !== 'pending' || doubleOptIn !== null) return true
    for (const index of indexesOf(person)) results[index] = { outcome: 'refused', reason: `status ${asksNobody}` }
    return false
  })
  if (people.length === 0) return results

  const at = clock.now()
  const found = await findOrInsert(trx, accountId, {
    people,
    isChange: conflict === 'update' || topicIds.length > 0,
    at,
  })
  const changes = conflict === 'update' ? changesOf(people, { found, declared }) : []
  const faults = new Map(changes.map(({ person, fault }) => [person, fault]))
  const kept = people.filter((person) => (faults.get(person) ?? null) === null)
  for (const [person, reason] of faults) {
    if (reason === null) continue
    for (const index of indexesOf(person)) results[index] = { outcome: 'refused', reason }
  }
  const changed = changes.filter(({ fault, fields }) => fault === null && fields.length > 0)
  if (changed.length > 0)
    await updatePeople(
      trx,
      accountId,
      changed.map(({ update }) => update),
      at,
    )

  const list = { accountId, audienceId }
  const usualStatus = doubleOptIn === null ? 'active' : 'pending'
  const known = (person: MergedRow) => found.get(person.emailKey) as FoundPerson
  const statusOf = (person: MergedRow): SubscriptionStatus =>
    known(person).status === 'unsubscribed' ? 'unsubscribed' : (person.status ?? usualStatus)
  const contacts = kept.map((person) => ({ id: known(person).id, status: statusOf(person) }))
  const created = await insertContacts(trx, list, contacts)
  const leaving =
    conflict === 'skip'
      ? []
      : kept.filter((person) => person.status === 'unsubscribed' && !created.has(known(person).id))
  const unsubscribed =
    leaving.length === 0
      ? new Set<string>()
      : await unsubscribeContacts(
          trx,
          list,
          leaving.map((person) => known(person).id),
          at,
        )

  const fieldsOf = new Map(changed.map(({ update, fields }) => [update.id, fields]))
  if (topicIds.length > 0) {
    const wanted = kept.map(known).filter(({ id }) => conflict === 'update' || created.has(id))
    const knownIds = new Set(wanted.filter(({ isNew }) => !isNew).map(({ id }) => id))
    const subscriberIds = await findSubscribed(
      trx,
      list,
      wanted.map(({ id }) => id),
    )
    for (const id of await subscribeUndecided(trx, { accountId, at }, { subscriberIds, topicIds })) {
      if (knownIds.has(id)) fieldsOf.set(id, [...(fieldsOf.get(id) ?? []), 'topics'])
    }
  }
  for (const person of kept) {
    const { id: subscriberId } = known(person)
    const isUpdated = fieldsOf.has(subscriberId) || unsubscribed.has(subscriberId)
    const ofKnown = isUpdated ? 'updated' : 'unchanged'
    results[person.index] = { outcome: created.has(subscriberId) ? 'created' : ofKnown, subscriberId }
    // A change by a later row of a new person is an update; of a known person it is part of the first row's update.
    for (const { index, isChange } of person.repeated) {
      results[index] = { outcome: isChange ? 'updated' : 'unchanged', subscriberId }
    }
  }

  const events = createAppender(trx, { outbox, scope, isOn: emitsEvents })
  for (const person of kept) {
    const { id: subscriberId, email, status, isNew } = known(person)
    if (isNew) await events.add(personAdded({ id: subscriberId, email, status }))
    if (created.has(subscriberId)) {
      const data = { subscriberId, audienceId, email, status: statusOf(person) }
      await events.add({ type: 'contact.created', data })
    }
  }
  const emails = new Map(kept.map((person) => [known(person).id, known(person).email]))
  const addUpdated = async (subscriberId: string, inAudience: string, changes: ChangedField[]) => {
    const email = emails.get(subscriberId) ?? ''
    await events.add({ type: 'contact.updated', data: { subscriberId, audienceId: inAudience, email, changes } })
  }
  if (fieldsOf.size > 0) {
    for await (const page of touchContacts(trx, accountId, [...fieldsOf.keys()], at)) {
      for (const { subscriber_id: id, audience_id: inAudience } of page) {
        const isHere = inAudience === audienceId
        if (isHere && created.has(id)) continue
        const fields = [...(fieldsOf.get(id) ?? [])]
        await addUpdated(id, inAudience, isHere && unsubscribed.has(id) ? [...fields, 'status'] : fields)
      }
    }
  }
  for (const id of unsubscribed) if (!fieldsOf.has(id)) await addUpdated(id, audienceId, ['status'])
  await events.end()
  if (doubleOptIn !== null) {
    const pending = kept.filter((person) => created.has(known(person).id) && statusOf(person) === 'pending').map(known)
    const asking = { audience: { id: audienceId, name: audience.name, doubleOptIn }, people: pending, isBulk: true }
    if (pending.length > 0) await markAsked(trx, list, await confirmations.ask(trx, scope, asking), at)
  }
  return results
}

/** Why a contact cannot be pending. */
export const asksNobody = 'must be active or unsubscribed: the audience has no doubleOptIn'

function indexesOf({ index, repeated }: MergedRow): number[] {
  return [index, ...repeated.map((row) => row.index)]
}

type FoundPerson = KnownPerson & { isNew: boolean }

/** Inserts the people who are new and locks the others. Returns all of them by the key of their address. */
async function findOrInsert(
  trx: Trx,
  accountId: string,
  { people, isChange, at }: { people: readonly MergedRow[]; isChange: boolean; at: Date },
): Promise<Map<string, FoundPerson>> {
  const found = new Map<string, FoundPerson>()
  for (let missing = people; missing.length > 0; ) {
    const newcomers = missing.map((row): BatchPerson => ({ ...newcomer(row), id: newId('subscriber', at) }))
    const inserted = await insertPeople(trx, accountId, newcomers, at)
    for (const person of newcomers) if (inserted.has(person.emailKey)) found.set(person.emailKey, toFound(person))
    const keys = missing.map(({ emailKey }) => emailKey).filter((key) => !inserted.has(key))
    const known = keys.length === 0 ? [] : await lockPeople(trx, accountId, { keys, isChange })
    for (const person of known) found.set(person.email_key, { ...person, isNew: false })
    // Who was deleted between the two statements is inserted in the next round.
    missing = missing.filter(({ emailKey }) => !found.has(emailKey))
  }
  return found
}

function newcomer({ email, emailKey, firstName = null, lastName = null, properties = {} }: MergedRow) {
  const given = Object.entries(properties).filter(
    (entry): entry is [string, string | number | boolean] => entry[1] !== null,
  )
  return { email, emailKey, firstName, lastName, properties: Object.fromEntries(given) }
}

function toFound({ id, email, emailKey, firstName, lastName, properties }: BatchPerson): FoundPerson {
  const names = { first_name: firstName, last_name: lastName }
  return { id, email, email_key: emailKey, ...names, status: 'active', properties, isNew: true }
}

type PersonChange = {
  person: MergedRow
  /** Why it is refused. */
  fault: string | null
  fields: readonly ChangedField[]
  update: { id: string; firstName: string | null; lastName: string | null; properties: FoundPerson['properties'] }
}

/** Returns what the rows change of people who were there before. */
function changesOf(
  people: readonly MergedRow[],
  { found, declared }: { found: Map<string, FoundPerson>; declared: readonly DeclaredProperty[] },
): PersonChange[] {
  return people.flatMap((person) => {
    const known = found.get(person.emailKey)
    if (known === undefined || known.isNew) return []
    const { properties, faults } =
      person.properties === undefined
        ? { properties: known.properties, faults: [] }
        : changeProperties(known.properties, person.properties, declared, 'properties')
    const { id, email, first_name: firstName, last_name: lastName, status } = known
    const before = { email, firstName, lastName, status, properties: known.properties }
    const { after, changed } = subscriberChange(before, {
      firstName: person.firstName,
      lastName: person.lastName,
      properties,
    })
    const fault = faults.length === 0 ? null : faults.map(({ path, message }) => `${path} ${message}`).join('; ')
    const update = { id, firstName: after.firstName, lastName: after.lastName, properties: after.properties }
    return [{ person, fault, fields: changed, update }]
  })
}

/** Appends events in chunks, and yields to the event loop between them. */
function createAppender(trx: Trx, { outbox, scope, isOn }: { outbox: Outbox; scope: Scope; isOn: boolean }) {
  let waiting: NewEvent[] = []

  async function end(): Promise<void> {
    if (waiting.length === 0) return
    const events = waiting
    waiting = []
    await outbox.append(trx, scope, events)
    await nextTurn()
  }

  return {
    async add(event: NewEvent): Promise<void> {
      if (!isOn) return
      waiting.push(event)
      if (waiting.length >= eventsAtOnce) await end()
    },
    end,
  }
}
