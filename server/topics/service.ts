import type { Page, PageQuery } from '../../contract/pagination.ts'
import { type CreateTopic, maxTopics, type Topic, type UpdateTopic } from '../../contract/topics.ts'
import { record } from '../audit-log/record.ts'
import { lockAccount } from '../database/account-lock.ts'
import { type Db, type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import {
  countTopics,
  deleteNextChoices,
  findTopic,
  insertTopic,
  lockTopic,
  markTopicDeleted,
  selectDeletedTopics,
  selectTopics,
  type TopicRow,
  updateTopic,
} from './queries.ts'

/** Use cases for topics, which both modes share. Throws DomainErrors. Every call is limited to one account. */
export type TopicService = {
  /** Adds a topic. Throws `conflict` when the account has 200 topics. */
  create(handle: Handle, accountId: string, topic: CreateTopic): Promise<Topic>
  /** Returns topics, newest first. */
  list(handle: Handle, accountId: string, query: PageQuery): Promise<Page<Topic>>
  get(handle: Handle, accountId: string, id: string): Promise<Topic>
  update(handle: Handle, accountId: string, id: string, patch: UpdateTopic): Promise<Topic>
  /**
   * Deletes a topic: nothing shows it any more. What people chose is deleted in small transactions: the first 2,000
   * choices at once, others by `clearDeletedTopics`. Throws `conflict` while campaigns about it are scheduled, sending or
   * paused.
   */
  delete(handle: Handle, scope: AuthoredScope, id: string): Promise<void>
}

type Dependencies = {
  clock: Clock
  /** Throws when something else needs a topic that is locked to be deleted. */
  guardUsed: (trx: Trx, scope: Scope, topicId: string) => Promise<void>
}

export function createTopicService({ clock, guardUsed }: Dependencies): TopicService {
  return {
    async create(handle, accountId, { name, description = null, default: defaultChoice }) {
      return inTransaction(handle, async (trx) => {
        await lockAccount(trx, accountId)
        if ((await countTopics(trx, accountId)) >= maxTopics) {
          throw new DomainError(
            'conflict',
            `The account has ${maxTopics} topics, which is the limit; one that was deleted counts until what people chose about it is forgotten. Delete one first.`,
          )
        }
        const at = clock.now()
        const id = newId('topic', at)
        return toTopic(await insertTopic(trx, { id, accountId, name, description, defaultChoice, at }))
      })
    },
    async list(handle, accountId, { limit, cursor }) {
      const rows = await selectTopics(handle, accountId, { after: decodeCursor('topic', cursor), limit: limit + 1 })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toTopic })
    },
    async get(handle, accountId, id) {
      const row = await findTopic(handle, accountId, id)
      if (row === undefined) throw notFound('topic', id)
      return toTopic(row)
    },
    async update(handle, accountId, id, patch) {
      return inTransaction(handle, async (trx) => {
        const before = await lockTopic(trx, accountId, id)
        if (before === undefined) throw notFound('topic', id)
        const { name = before.name, description = before.description } = patch
        if (name === before.name && description === before.description) return toTopic(before)
        return toTopic(await updateTopic(trx, accountId, { id, name, description, at: clock.now() }))
      })
    },
    async delete(handle, scope, id) {
      const { accountId, author } = scope
      await inTransaction(handle, async (trx) => {
        const at = clock.now()
        const topic = await markTopicDeleted(trx, accountId, id, at)
        if (topic === undefined) throw notFound('topic', id)
        await guardUsed(trx, scope, id)
        const target = { type: 'topic', id, name: topic.name } as const
        await record(trx, { accountId, at, author, action: 'topic.deleted', target })
      })
      if (!handle.isTransaction) await deleteNextChoices(handle as Db, { account_id: accountId, id })
    },
  }
}

/** Deleted topics that one call deals with, and statements for each: 200,000 choices. */
const clearsAtMost = { topics: 100, statements: 100 }

/**
 * Deletes what people chose about deleted topics, in small transactions. Call it every minute. Several processes may do
 * it at the same time.
 */
export async function clearDeletedTopics({ db }: { db: Db }): Promise<void> {
  for (const topic of await selectDeletedTopics(db, clearsAtMost.topics)) {
    for (let done = 0; done < clearsAtMost.statements && (await deleteNextChoices(db, topic)); done++);
  }
}

function toTopic(row: TopicRow): Topic {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    default: row.default_choice,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
