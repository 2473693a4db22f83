import type { Audience, CreateAudience, UpdateAudience } from '../../contract/audiences.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import { type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { Outbox } from '../outbox/append.ts'
import { notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { Scope } from '../shared/scope.ts'
import { guardUnsubscribing } from '../subscribers/unsubscribing.ts'
import {
  type AudienceRow,
  deleteAudience,
  deleteContacts,
  findAudience,
  insertAudience,
  lockAudience,
  selectAudiences,
  updateAudience,
} from './queries.ts'

/** Contacts deleted, and events appended, at a time. Bounds the memory of deleting a large audience. */
const chunkSize = 1_000

/** Use cases for audiences, which both modes share. Throws DomainErrors. Every call is limited to one account. */
export type AudienceService = {
  create(handle: Handle, accountId: string, audience: CreateAudience): Promise<Audience>
  /** Returns audiences, newest first. */
  list(handle: Handle, accountId: string, query: PageQuery): Promise<Page<Audience>>
  get(handle: Handle, accountId: string, id: string): Promise<Audience>
  update(handle: Handle, accountId: string, id: string, patch: UpdateAudience): Promise<Audience>
  /**
   * Deletes an audience and its contacts, but not the people. Emits `contact.deleted` for each contact. Throws
   * `authentication_error` with a test key when a contact has unsubscribed.
   */
  delete(handle: Handle, scope: Scope, id: string): Promise<void>
}

export function createAudienceService({ clock, outbox }: { clock: Clock; outbox: Outbox }): AudienceService {
  return {
    async create(handle, accountId, { name, description = null }) {
      const at = clock.now()
      return toAudience(await insertAudience(handle, { id: newId('audience', at), accountId, name, description, at }))
    },
    async list(handle, accountId, { limit, cursor }) {
      const rows = await selectAudiences(handle, accountId, {
        after: decodeCursor('audience', cursor),
        limit: limit + 1,
      })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toAudience })
    },
    async get(handle, accountId, id) {
      const row = await findAudience(handle, accountId, id)
      if (row === undefined) throw notFound('audience', id)
      return toAudience(row)
    },
    async update(handle, accountId, id, patch) {
      return inTransaction(handle, async (trx) => {
        const before = await lockAudience(trx, accountId, id, 'change')
        if (before === undefined) throw notFound('audience', id)
        const { name = before.name, description = before.description } = patch
        if (name === before.name && description === before.description) return toAudience(before)
        return toAudience(await updateAudience(trx, id, { name, description, at: clock.now() }))
      })
    },
    async delete(handle, scope, id) {
      await inTransaction(handle, async (trx) => {
        // From here on no contact can be added.
        const audience = await lockAudience(trx, scope.accountId, id, 'delete')
        if (audience === undefined) throw notFound('audience', id)
        let chunk: Awaited<ReturnType<typeof deleteContacts>>
        let after = ''
        do {
          chunk = await deleteContacts(trx, id, { after, limit: chunkSize })
          const isUnsubscribed = chunk.some(({ status }) => status === 'unsubscribed')
          guardUnsubscribing('Deleting an audience that somebody unsubscribed from', {
            mode: scope.mode,
            isUnsubscribed,
          })
          await outbox.append(
            trx,
            scope,
            chunk.map((contact) => ({
              type: 'contact.deleted',
              data: { subscriberId: contact.subscriber_id, audienceId: id },
            })),
          )
          after = chunk.at(-1)?.subscriber_id ?? after
        } while (chunk.length === chunkSize)
        await deleteAudience(trx, id)
      })
    },
  }
}

function toAudience(row: AudienceRow): Audience {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
