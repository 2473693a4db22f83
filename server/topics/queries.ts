import { type Selectable, sql } from 'kysely'
import type { TopicDefault } from '../../contract/topics.ts'
import { type Db, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { TopicsTable } from '../database/tables/topics.ts'

export type TopicRow = Selectable<TopicsTable>

type NewTopic = {
  id: string
  accountId: string
  name: string
  description: string | null
  defaultChoice: TopicDefault
  at: Date
}

export async function insertTopic(trx: Trx, topic: NewTopic): Promise<TopicRow> {
  return trx
    .insertInto('topics')
    .values({
      account_id: topic.accountId,
      id: topic.id,
      name: topic.name,
      description: topic.description,
      default_choice: topic.defaultChoice,
      created_at: topic.at,
      updated_at: topic.at,
      deleted_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Returns how many topics an account has, with those that are being deleted. */
export async function countTopics(trx: Trx, accountId: string): Promise<number> {
  const { count } = await trx
    .selectFrom('topics')
    .select(sql<number>`count(*)::int`.as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return count
}

function topicsOf(handle: Handle, accountId: string) {
  return handle.selectFrom('topics').selectAll().where('account_id', '=', accountId).where('deleted_at', 'is', null)
}

export async function findTopic(handle: Handle, accountId: string, id: string): Promise<TopicRow | undefined> {
  return topicsOf(handle, accountId).where('id', '=', id).executeTakeFirst()
}

/** Locks a topic for a change. */
export async function lockTopic(trx: Trx, accountId: string, id: string): Promise<TopicRow | undefined> {
  return topicsOf(trx, accountId).where('id', '=', id).forNoKeyUpdate().executeTakeFirst()
}

/** Returns topics, newest first. */
export async function selectTopics(
  handle: Handle,
  accountId: string,
  page: { after?: string | undefined; limit: number },
): Promise<TopicRow[]> {
  let query = topicsOf(handle, accountId)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

export async function updateTopic(
  trx: Trx,
  accountId: string,
  { id, name, description, at }: Pick<NewTopic, 'id' | 'name' | 'description' | 'at'>,
): Promise<TopicRow> {
  return trx
    .updateTable('topics')
    .set({ name, description, updated_at: at })
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/**
 * Marks a topic as deleted. Waits for the transactions that write choices of it: when this has committed, no more are
 * written. Returns the topic. Undefined: there is no such topic.
 */
export async function markTopicDeleted(
  trx: Trx,
  accountId: string,
  id: string,
  at: Date,
): Promise<TopicRow | undefined> {
  // FOR UPDATE, since an UPDATE of other columns would not wait for the key share of the writers.
  const topic = await topicsOf(trx, accountId).where('id', '=', id).forUpdate().executeTakeFirst()
  if (topic === undefined) return undefined
  await trx
    .updateTable('topics')
    .set({ deleted_at: at })
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .execute()
  return topic
}

/** A topic that is deleted and whose choices are still there. */
export type DeletedTopic = { account_id: string; id: string }

/** Returns deleted topics of all accounts, which people may still have choices of. */
export async function selectDeletedTopics(handle: Handle, limit: number): Promise<DeletedTopic[]> {
  return handle
    .selectFrom('topics')
    .select(['account_id', 'id'])
    .where('deleted_at', 'is not', null)
    .orderBy('account_id')
    .orderBy('id')
    .limit(limit)
    .execute()
}

/** Choices that one statement deletes. */
const choicesAtOnce = 2_000

/**
 * Deletes the next 2,000 choices of a deleted topic, and the topic with the last of them. Returns false when that is
 * done.
 */
export async function deleteNextChoices(db: Db, { account_id: accountId, id }: DeletedTopic): Promise<boolean> {
  return inTransaction(db, async (trx) => {
    // Locked choices are left out: those of a person who is being deleted too. The last statement waits for them.
    const { rows } = await sql<{ count: number }>`
      WITH page AS MATERIALIZED (
        SELECT subscriber_id FROM topic_choices WHERE account_id = ${accountId} AND topic_id = ${id}
        ORDER BY subscriber_id LIMIT ${choicesAtOnce} FOR UPDATE SKIP LOCKED
      ), deleted AS (
        DELETE FROM topic_choices WHERE account_id = ${accountId} AND topic_id = ${id}
          AND subscriber_id = ANY(ARRAY(SELECT subscriber_id FROM page))
      )
      SELECT count(*)::int AS count FROM page
    `.execute(trx)
    if ((rows[0]?.count ?? 0) === choicesAtOnce) return true
    await trx
      .deleteFrom('topics')
      .where('account_id', '=', accountId)
      .where('id', '=', id)
      .where('deleted_at', 'is not', null)
      .execute()
    return false
  })
}
