import type { Mode } from '../../contract/mode.ts'
import type { SubscriberTopic, TopicChoice } from '../../contract/topics.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import { brokenRules, DomainError, notFound } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'
import { holdTopics, isSubscribed, type PersonTopic, topicsOfPerson, writeChoices } from '../topics/choices.ts'
import { changeMemberships } from './contacts.ts'
import { lockPerson, type PeopleDependencies, type Person } from './people.ts'
import { findSubscriber } from './queries.ts'
import { guardUnsubscribing } from './unsubscribing.ts'

/** Use cases for the topics of a person. Throws DomainErrors. Every call is limited to one account. */
export type SubscriberTopicService = {
  /** Returns all topics of the account, newest first. */
  list(handle: Handle, accountId: string, subscriberId: string): Promise<SubscriberTopic[]>
  /**
   * Changes the topics given. Emits `contact.updated` for each audience when the person gets another topic or one less.
   * Throws `topic_not_found`, `rule_violation` for a topic that is named twice, and `authentication_error` when a test
   * key would let a person have a topic again that they left.
   */
  update(
    handle: Handle,
    scope: Scope,
    subscriberId: string,
    choices: readonly TopicChoice[],
  ): Promise<SubscriberTopic[]>
}

export function createSubscriberTopicService(dependencies: PeopleDependencies): SubscriberTopicService {
  return {
    async list(handle, accountId, subscriberId) {
      const person = await findSubscriber(handle, accountId, subscriberId)
      if (person === undefined) throw notFound('subscriber', subscriberId)
      return (await topicsOfPerson(handle, accountId, subscriberId)).map(toSubscriberTopic)
    },
    async update(handle, { accountId, mode }, subscriberId, choices) {
      assertOnce(choices)
      return inTransaction(handle, async (trx) => {
        const person = await lockPerson(trx, accountId, subscriberId)
        if (person === undefined) throw notFound('subscriber', subscriberId)
        const missing = await chooseTopics(trx, dependencies, person, { choices, mode })
        if (missing.size > 0) throw noTopics(choices, missing)
        return (await topicsOfPerson(trx, accountId, subscriberId)).map(toSubscriberTopic)
      })
    },
  }
}

/**
 * Writes what a locked person chose. Emits `contact.updated` for each of their audiences when they get another topic or
 * one less. Returns the topics that are not there; the others are written. Throws `authentication_error` when a test
 * key would let a person have a topic again that they left.
 *
 * @param choices Each topic once.
 * @param mode Mode of the request or the email that causes the change.
 */
export async function chooseTopics(
  trx: Trx,
  dependencies: PeopleDependencies,
  person: Person,
  { choices, mode }: { choices: readonly TopicChoice[]; mode: Mode },
): Promise<Set<string>> {
  const { account_id: accountId, id: subscriberId } = person
  const held = await holdTopics(
    trx,
    accountId,
    choices.map(({ topicId }) => topicId),
  )
  const before = new Map((await topicsOfPerson(trx, accountId, subscriberId)).map((topic) => [topic.id, topic]))
  const written = choices.filter(
    ({ topicId, subscribed }) => held.has(topicId) && before.get(topicId)?.chosen !== subscribed,
  )
  const isUnsubscribed = written.some(({ topicId, subscribed }) => subscribed && before.get(topicId)?.chosen === false)
  guardUnsubscribing('Subscribing a person again to a topic that they left', { mode, isUnsubscribed })
  await writeChoices(trx, { accountId, subscriberId, at: dependencies.clock.now() }, written)
  const isChanged = written.some(({ topicId, subscribed }) => {
    const topic = before.get(topicId)
    return topic !== undefined && isSubscribed(topic) !== subscribed
  })
  if (isChanged) {
    await changeMemberships(trx, dependencies, person, {
      changed: ['topics'],
      statusOf: ({ status }) => status,
      mode,
    })
  }
  return new Set(choices.map(({ topicId }) => topicId).filter((id) => !held.has(id)))
}

/** Throws `rule_violation` that names each topic that stands twice. */
function assertOnce(choices: readonly TopicChoice[]): void {
  const seen = new Set<string>()
  const faults = choices.flatMap(({ topicId }, index) => {
    if (!seen.has(topicId)) {
      seen.add(topicId)
      return []
    }
    return [{ path: `body.topics[${index}].topicId`, message: 'is there already' }]
  })
  if (faults.length > 0) throw brokenRules(faults)
}

function noTopics(choices: readonly TopicChoice[], missing: ReadonlySet<string>): DomainError {
  const details = choices.flatMap(({ topicId }, index) =>
    missing.has(topicId) ? [{ path: `body.topics[${index}].topicId`, message: 'must be a topic of the account' }] : [],
  )
  const [first] = missing
  return new DomainError('topic_not_found', `There is no topic with the id "${first}" in this account.`, { details })
}

function toSubscriberTopic(topic: PersonTopic): SubscriberTopic {
  return {
    topicId: topic.id,
    name: topic.name,
    default: topic.default_choice,
    subscribed: isSubscribed(topic),
    chosenAt: topic.chosen_at?.toISOString() ?? null,
  }
}
