import { type RawBuilder, sql } from 'kysely'
import type { TopicChoice, TopicDefault } from '../../contract/topics.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'

/*
 * The topic choices of people, for other rooms. The choices of a person are written under the lock of the person.
 */

/** A topic as it is for one person. */
export type PersonTopic = {
  id: string
  name: string
  description: string | null
  default_choice: TopicDefault
  /** The choice of the person. Null: none. */
  chosen: boolean | null
  chosen_at: Date | null
}

/** Returns whether a person gets a topic: what they chose, or else the default. */
export function isSubscribed({ chosen, default_choice }: Pick<PersonTopic, 'chosen' | 'default_choice'>): boolean {
  return chosen ?? default_choice === 'opt_out'
}

const selectPersonTopics = prepare<{ accountId: string; subscriberId: string }, PersonTopic>({
  name: 'find_person_topics',
})`
  SELECT t.id, t.name, t.description, t.default_choice, c.subscribed AS chosen, c.changed_at AS chosen_at
  FROM topics t LEFT JOIN topic_choices c
    ON c.account_id = t.account_id AND c.subscriber_id = ${'subscriberId'} AND c.topic_id = t.id
  WHERE t.account_id = ${'accountId'} AND t.deleted_at IS NULL ORDER BY t.id DESC
`

/** Returns all topics of an account, newest first, as they are for a person: at most 200. */
export function topicsOfPerson(handle: Handle, accountId: string, subscriberId: string): Promise<PersonTopic[]> {
  return selectPersonTopics(handle, { accountId, subscriberId })
}

/** Returns those of the topics that are there. None of them is deleted before the transaction ends. */
export async function holdTopics(trx: Trx, accountId: string, ids: readonly string[]): Promise<Set<string>> {
  const rows = await trx
    .selectFrom('topics')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', '=', sql<string>`ANY(${ids}::text[])`)
    .where('deleted_at', 'is', null)
    .orderBy('id')
    .forKeyShare()
    .execute()
  return new Set(rows.map(({ id }) => id))
}

/**
 * Writes what a locked person chose.
 *
 * @param choices Of topics that are held, each once.
 */
export async function writeChoices(
  trx: Trx,
  { accountId, subscriberId, at }: { accountId: string; subscriberId: string; at: Date },
  choices: readonly TopicChoice[],
): Promise<void> {
  if (choices.length === 0) return
  await sql`
    INSERT INTO topic_choices (account_id, subscriber_id, topic_id, subscribed, changed_at)
    SELECT ${accountId}, ${subscriberId}, c.topic_id, c.subscribed, ${at}
    FROM unnest(
      ${choices.map(({ topicId }) => topicId)}::text[],
      ${choices.map(({ subscribed }) => subscribed)}::bool[]
    ) AS c (topic_id, subscribed)
    ON CONFLICT (account_id, subscriber_id, topic_id)
      DO UPDATE SET subscribed = excluded.subscribed, changed_at = excluded.changed_at
  `.execute(trx)
}

/**
 * Subscribes locked people to those topics that are there and about which they chose nothing. Returns who gets another
 * topic now: those of a topic that people get by its default got it before.
 */
export async function subscribeUndecided(
  trx: Trx,
  { accountId, at }: { accountId: string; at: Date },
  { subscriberIds, topicIds }: { subscriberIds: readonly string[]; topicIds: readonly string[] },
): Promise<Set<string>> {
  const { rows } = await sql<{ subscriber_id: string }>`
    WITH topic AS MATERIALIZED (
      SELECT id, default_choice FROM topics
      WHERE account_id = ${accountId} AND id = ANY(${topicIds}::text[]) AND deleted_at IS NULL
      ORDER BY id FOR KEY SHARE
    ), chosen AS (
      INSERT INTO topic_choices (account_id, subscriber_id, topic_id, subscribed, changed_at)
      SELECT ${accountId}, p.id, topic.id, true, ${at} FROM unnest(${subscriberIds}::text[]) AS p (id) CROSS JOIN topic
      ON CONFLICT (account_id, subscriber_id, topic_id) DO NOTHING
      RETURNING subscriber_id, topic_id
    )
    SELECT DISTINCT subscriber_id FROM chosen JOIN topic ON topic.id = chosen.topic_id
    WHERE topic.default_choice = 'opt_in'
  `.execute(trx)
  return new Set(rows.map((row) => row.subscriber_id))
}

const selectWithoutTopic = prepare<
  { accountId: string; topicId: string; addressKeys: readonly string[] },
  { without: string[] }
>({ name: 'find_without_topic' })`
  SELECT ARRAY(
    SELECT k.address_key FROM unnest(${'addressKeys'}::text[]) AS k (address_key)
    LEFT JOIN subscribers s ON s.account_id = t.account_id AND s.email_key = k.address_key
    LEFT JOIN topic_choices c ON c.account_id = t.account_id AND c.subscriber_id = s.id AND c.topic_id = t.id
    WHERE NOT coalesce(c.subscribed, t.default_choice = 'opt_out')
  ) AS without
  FROM topics t WHERE t.account_id = ${'accountId'} AND t.id = ${'topicId'} AND t.deleted_at IS NULL
`

/**
 * Returns the keys, as `addressKey` makes them, of the addresses whose owners do not get a topic; an address without a
 * person gets it by its default. Returns null when there is no such topic.
 */
export async function findWithoutTopic(
  handle: Handle,
  accountId: string,
  { id: topicId, addressKeys }: { id: string; addressKeys: readonly string[] },
): Promise<Set<string> | null> {
  const [row] = await selectWithoutTopic(handle, { accountId, topicId, addressKeys })
  return row === undefined ? null : new Set(row.without)
}

/** The topics of an account with their defaults, by id. */
export type TopicDefaults = ReadonlyMap<string, TopicDefault>

/** Returns all topics of an account: at most 200. */
export async function topicDefaults(handle: Handle, accountId: string): Promise<TopicDefaults> {
  const rows = await handle
    .selectFrom('topics')
    .select(['id', 'default_choice'])
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .execute()
  return new Map(rows.map(({ id, default_choice }) => [id, default_choice]))
}

/**
 * Returns a condition over the alias `s` (a row of `subscribers`): whether the person gets a topic. It is true or false,
 * never null, and costs one look-up by the primary key for each person.
 *
 * @param topic Of the same account. A default never changes.
 */
export function getsTopic(
  accountId: string,
  { id, defaultChoice }: { id: string; defaultChoice: TopicDefault },
): RawBuilder<boolean> {
  return sql`coalesce((
    SELECT t.subscribed FROM topic_choices t
    WHERE t.account_id = ${accountId} AND t.subscriber_id = s.id AND t.topic_id = ${id}
  ), ${defaultChoice === 'opt_out'})`
}

/** Returns true when a locked person has left a topic that is there. */
export async function hasLeftTopic(trx: Trx, accountId: string, subscriberId: string): Promise<boolean> {
  const row = await trx
    .selectFrom('topic_choices')
    .innerJoin('topics', (join) =>
      join
        .onRef('topics.account_id', '=', 'topic_choices.account_id')
        .onRef('topics.id', '=', 'topic_choices.topic_id'),
    )
    .select('topic_choices.topic_id')
    .where('topic_choices.account_id', '=', accountId)
    .where('topic_choices.subscriber_id', '=', subscriberId)
    .where('topic_choices.subscribed', '=', false)
    .where('topics.deleted_at', 'is', null)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Deletes what a person chose, who is locked and is being deleted. */
export async function deleteChoicesOf(trx: Trx, accountId: string, subscriberId: string): Promise<void> {
  await trx
    .deleteFrom('topic_choices')
    .where('account_id', '=', accountId)
    .where('subscriber_id', '=', subscriberId)
    .execute()
}
