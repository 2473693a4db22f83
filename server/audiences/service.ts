import { isDeepStrictEqual } from 'node:util'
import type { Audience, CreateAudience, UpdateAudience } from '../../contract/audiences.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import { record } from '../audit-log/record.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { DoubleOptIn } from '../database/tables/people.ts'
import type { Clock } from '../lib/clock.ts'
import type { Outbox } from '../outbox/append.ts'
import { liveKeyNeeded, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import { guardUnsubscribing } from '../subscribers/unsubscribing.ts'
import type { ConfirmationMailer } from './confirmation.ts'
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
  /**
   * Adds an audience. Throws with `doubleOptIn` what `ConfirmationMailer.judge` returns: `validation_error`,
   * `rule_violation`, and for a live key `domain_not_verified` and `public_url_needed`.
   */
  create(handle: Handle, scope: Scope, audience: CreateAudience): Promise<Audience>
  /** Returns audiences, newest first. */
  list(handle: Handle, accountId: string, query: PageQuery): Promise<Page<Audience>>
  get(handle: Handle, accountId: string, id: string): Promise<Audience>
  /** Changes an audience. Throws as `create`, and `authentication_error` when a test key would change `doubleOptIn`. */
  update(handle: Handle, scope: Scope, id: string, patch: UpdateAudience): Promise<Audience>
  /**
   * Deletes an audience and its contacts, but not the people. Emits `contact.deleted` for each contact. Throws
   * `authentication_error` with a test key when a contact has unsubscribed, and `conflict` while campaigns to it are
   * scheduled, sending or paused.
   */
  delete(handle: Handle, scope: AuthoredScope, id: string): Promise<void>
}

type Dependencies = {
  clock: Clock
  outbox: Outbox
  confirmations: Pick<ConfirmationMailer, 'judge'>
  /** Throws when something else needs an audience that is locked to be deleted. */
  guardUsed: (trx: Trx, scope: Scope, audienceId: string) => Promise<void>
}

export function createAudienceService({ clock, outbox, confirmations, guardUsed }: Dependencies): AudienceService {
  async function judge(handle: Handle, scope: Scope, doubleOptIn: DoubleOptIn | null): Promise<void> {
    const refusal = doubleOptIn === null ? null : await confirmations.judge(handle, scope, doubleOptIn)
    if (refusal !== null) throw refusal
  }

  return {
    async create(handle, scope, { name, description = null, doubleOptIn: given }) {
      const doubleOptIn = toDoubleOptIn(given)
      await judge(handle, scope, doubleOptIn)
      const at = clock.now()
      const audience = { id: newId('audience', at), accountId: scope.accountId, name, description, doubleOptIn, at }
      return toAudience(await insertAudience(handle, audience))
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
    async update(handle, scope, id, patch) {
      return inTransaction(handle, async (trx) => {
        const before = await lockAudience(trx, scope.accountId, id, 'change')
        if (before === undefined) throw notFound('audience', id)
        const { name = before.name, description = before.description } = patch
        const doubleOptIn = patch.doubleOptIn === undefined ? before.double_opt_in : toDoubleOptIn(patch.doubleOptIn)
        const isAskingChanged = !isDeepStrictEqual(doubleOptIn, before.double_opt_in)
        if (name === before.name && description === before.description && !isAskingChanged) return toAudience(before)
        if (isAskingChanged) {
          if (scope.mode === 'test') throw liveKeyNeeded('Changing the double opt-in of an audience')
          await judge(trx, scope, doubleOptIn)
        }
        return toAudience(await updateAudience(trx, id, { name, description, doubleOptIn, at: clock.now() }))
      })
    },
    async delete(handle, scope, id) {
      await inTransaction(handle, async (trx) => {
        // From here on no contact can be added.
        const audience = await lockAudience(trx, scope.accountId, id, 'delete')
        if (audience === undefined) throw notFound('audience', id)
        await guardUsed(trx, scope, id)
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
        const { accountId, author } = scope
        const target = { type: 'audience', id, name: audience.name } as const
        await record(trx, { accountId, at: clock.now(), author, action: 'audience.deleted', target })
      })
    },
  }
}

function toDoubleOptIn(given: CreateAudience['doubleOptIn']): DoubleOptIn | null {
  if (given === null || given === undefined) return null
  const { from, subject = null, text = null } = given
  return { from, subject, text }
}

function toAudience(row: AudienceRow): Audience {
  return {
    id: row.id,
    name: row.name,
    description: row.description,
    doubleOptIn: row.double_opt_in,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
