import type { Page } from '../../contract/pagination.ts'
import type {
  CreateSuppression,
  Suppression,
  SuppressionListQuery,
  SuppressionReason,
  SuppressionSource,
} from '../../contract/suppressions.ts'
import { record } from '../audit-log/record.ts'
import { type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { addressKey, addressPrefixes } from '../message/address.ts'
import { readAddress } from '../message/mailbox.ts'
import { DomainError } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope } from '../shared/scope.ts'
import {
  deleteSuppression,
  findSuppressions,
  insertSuppression,
  type SuppressionRow,
  selectSuppressions,
} from './queries.ts'

/** The reason why nothing is sent to an address, and since when. */
export type Suppressed = { reason: SuppressionReason; since: Date }

/** Use cases for the suppression list. Throws DomainErrors. Every call is limited to one account. */
export type SuppressionService = {
  /**
   * Adds an address to the list with the reason `manual`. An address whose owner has unsubscribed, which until then got
   * all emails except those to audiences, gets none from then on. Throws `conflict` when it is on the list for another
   * reason.
   */
  create(handle: Handle, accountId: string, suppression: CreateSuppression): Promise<Suppression>
  /** Returns entries, newest first: see `selectSuppressions`. */
  list(handle: Handle, accountId: string, query: SuppressionListQuery): Promise<Page<Suppression>>
  /** Returns the entry of an address, in any letter case. Throws `not_found` when it is not on the list. */
  get(handle: Handle, accountId: string, address: string): Promise<Suppression>
  /**
   * Removes an address, in any letter case, from the list. If its owner has unsubscribed and the entry has another
   * reason, only that reason is removed, and the entry stays as `unsubscribe`. Throws `not_found`.
   */
  delete(handle: Handle, scope: AuthoredScope, address: string): Promise<void>
  /** Returns the addresses that are on the list. Addresses are given as `addressKey` makes them. */
  find(handle: Handle, accountId: string, addressKeys: readonly string[]): Promise<Map<string, Suppressed>>
}

export function createSuppressionService({ clock }: { clock: Clock }): SuppressionService {
  return {
    async create(handle, accountId, { address: given }) {
      const address = readAddress(given, 'body.address')
      return inTransaction(handle, async (trx) => {
        const at = clock.now()
        const id = newId('suppression', at)
        const row = await insertSuppression(trx, { id, accountId, address, addressKey: addressKey(address), at })
        if (row === undefined) throw new DomainError('conflict', `"${address}" is on the suppression list already.`)
        return toSuppression(row)
      })
    },
    async list(handle, accountId, { reason, address, search, limit, cursor }) {
      const rows = await selectSuppressions(handle, accountId, {
        reason,
        addressKey: address === undefined ? undefined : addressKey(readAddress(address, 'query.address')),
        prefixes: search === undefined ? undefined : addressPrefixes(search.trim()),
        before: decodeCursor('suppression', cursor),
        limit: limit + 1,
      })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toSuppression })
    },
    async get(handle, accountId, address) {
      const page = { addressKey: addressKey(address), limit: 1 }
      const [row] = isStorable(address) ? await selectSuppressions(handle, accountId, page) : []
      if (row === undefined) throw notSuppressed()
      return toSuppression(row)
    },
    async delete(handle, { accountId, author }, address) {
      if (!isStorable(address)) throw notSuppressed()
      await inTransaction(handle, async (trx) => {
        const entry = await deleteSuppression(trx, accountId, addressKey(address))
        if (entry === undefined) throw notSuppressed()
        const { id, reason } = entry
        // Not the address: it would outlive the person here.
        const target = { type: 'suppression', id, name: null } as const
        const action = 'suppression.deleted'
        await record(trx, { accountId, at: clock.now(), author, action, target, details: { reason } })
      })
    },
    async find(handle, accountId, addressKeys) {
      if (addressKeys.length === 0) return new Map()
      const rows = await findSuppressions(handle, accountId, addressKeys)
      return new Map(rows.map((row) => [row.address_key, { reason: row.reason, since: row.created_at }]))
    },
  }
}

/** Returns false for text with a NUL character, which PostgreSQL cannot store and no address has. */
function isStorable(address: string): boolean {
  return !address.includes('\u0000')
}

function notSuppressed(): DomainError {
  return new DomainError('not_found', 'The address is not on the suppression list of this account.')
}

function toSuppression(row: SuppressionRow): Suppression {
  return {
    id: row.id,
    address: row.address,
    reason: row.reason,
    source: row.source ?? usualSources[row.reason],
    emailId: row.email_id,
    unsubscribedAt: (row.reason === 'unsubscribe' ? row.created_at : row.unsubscribed_at)?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
  }
}

/** Sources of entries that an older version has written without one. */
const usualSources: Readonly<Record<SuppressionReason, SuppressionSource>> = {
  hard_bounce: 'smtp_answer',
  complaint: 'feedback_report',
  unsubscribe: 'unsubscribe_link',
  manual: 'api',
}
