import type { Brand } from '../../contract/brand.ts'
import type { TopicChoice } from '../../contract/topics.ts'
import { type Handle, inTransaction } from '../database/connection.ts'
import { addressKey } from '../message/address.ts'
import type { UnsubscribeRef } from '../message/mail-tokens.ts'
import { isSubscribed, topicsOfPerson } from '../topics/choices.ts'
import { findPersonOfLink } from './link-person.ts'
import { changePerson, lockPerson, type PeopleDependencies } from './people.ts'
import { findModeOfEmail, type SubscriberRow } from './queries.ts'
import { chooseTopics } from './topics.ts'

/** The data of a person that the holder of their unsubscribe link sees. */
export type Preferences = {
  firstName: string | null
  lastName: string | null
  isUnsubscribed: boolean
  /** All topics of the account, newest first. */
  topics: readonly { id: string; name: string; description: string | null; isSubscribed: boolean }[]
}

/** A change by the holder of an unsubscribe link. */
export type PreferencesChange = {
  firstName: string | null
  lastName: string | null
  /** The topics that were shown. Others stay as they are, such as those that were made since. */
  shown: ReadonlySet<string>
  /** Those of them that are wanted. */
  wanted: ReadonlySet<string>
}

/** The content of the page of a link. `topic`: the name of the topic that the link unsubscribes from. */
export type ShownPreferences = { brand: Brand; topic: string | null; preferences: Preferences | null }

/**
 * Returns the content of the page of a link, or null when the account is gone.
 *
 * @param findBrand Returns the brand of an account, null when it is gone.
 */
export async function showPreferences(
  handle: Handle,
  ref: UnsubscribeRef,
  findBrand: (handle: Handle, accountId: string) => Promise<Brand | null>,
): Promise<ShownPreferences | null> {
  const brand = await findBrand(handle, ref.accountId)
  if (brand === null) return null
  const preferences = await findPreferences(handle, ref)
  const topic = preferences?.topics.find(({ id }) => id === ref.topicId)
  return { brand, topic: topic?.name ?? null, preferences }
}

/**
 * Returns true if the person has the address that the link was sent to. Who has another one by now may have corrected it:
 * the link is then in the mailbox of somebody else, who may end emails, and see and change no name.
 */
function hasAddress({ email_key }: Pick<SubscriberRow, 'email_key'>, { address }: UnsubscribeRef): boolean {
  return email_key === addressKey(address)
}

/** Returns the topics and the name of the person of a link. Null: the person was deleted. */
async function findPreferences(handle: Handle, ref: UnsubscribeRef): Promise<Preferences | null> {
  const person = await findPersonOfLink(handle, ref)
  if (person === undefined) return null
  const topics = await topicsOfPerson(handle, ref.accountId, person.id)
  return {
    firstName: hasAddress(person, ref) ? person.first_name : null,
    lastName: hasAddress(person, ref) ? person.last_name : null,
    isUnsubscribed: person.status === 'unsubscribed',
    topics: topics.map((topic) => ({
      id: topic.id,
      name: topic.name,
      description: topic.description,
      isSubscribed: isSubscribed(topic),
    })),
  }
}

/**
 * Changes the names and topics of the person that a link belongs to, with the events of these changes. Ignores topics of
 * other accounts. Does nothing when the person has unsubscribed from everything, and when the person was deleted.
 */
export async function savePreferences(
  handle: Handle,
  dependencies: PeopleDependencies,
  ref: UnsubscribeRef,
  { firstName, lastName, shown, wanted }: PreferencesChange,
): Promise<void> {
  await inTransaction(handle, async (trx) => {
    const { accountId, emailId } = ref
    const found = await findPersonOfLink(trx, ref)
    const person = found === undefined ? undefined : await lockPerson(trx, accountId, found.id)
    if (person === undefined || person.status === 'unsubscribed') return
    const mode = (await findModeOfEmail(trx, accountId, emailId)) ?? 'live'
    if (hasAddress(person, ref)) await changePerson(trx, dependencies, person, { patch: { firstName, lastName }, mode })
    const topics = await topicsOfPerson(trx, accountId, person.id)
    // A topic that did not change is not stored as a choice: its default still applies.
    const choices = topics.flatMap((topic): TopicChoice[] => {
      const subscribed = wanted.has(topic.id)
      return shown.has(topic.id) && subscribed !== isSubscribed(topic) ? [{ topicId: topic.id, subscribed }] : []
    })
    await chooseTopics(trx, dependencies, person, { choices, mode })
  })
}
