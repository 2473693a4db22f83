import type { Page } from '../../contract/pagination.ts'
import type {
  CreateSuppression,
  Suppression,
  SuppressionListQuery,
  SuppressionReason,
  SuppressionSource,
} from '../../contract/suppressions.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { addressKey } from '../message/address.ts'
import { readAddress } from '../message/mailbox.ts'
import { DomainError } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import {
  deleteSuppression,
  findSuppressions,
  insertSuppression,
  type SuppressionRow,
  selectSuppressions,
} from './queries.ts'

/** Why nothing is sent to an address, and since when. */
export type Suppressed = { reason: SuppressionReason; since: Date }

/** Use cases around addresses that are not written to. Throws DomainErrors; every call is limited to one account. */
export type SuppressionService = {
  /**
   * Puts an address on the list by hand. One whose owner unsubscribed, to whom only emails to an audience
   * were held back, gets none at all from then on. `conflict` when it is there for another reason.
   */
  create(handle: Handle, accountId: string, suppression: CreateSuppression): Promise<Suppression>
  /** Newest first. */
  list(handle: Handle, accountId: string, query: SuppressionListQuery): Promise<Page<Suppression>>
  /** The entry of an address, in whatever letter case it is given. `not_found` when it is not on the list. */
  get(handle: Handle, accountId: string, address: string): Promise<Suppression>
  /**
   * Has an address be written to again, in whatever letter case it is given. One whose owner unsubscribed and
   * that is there for another reason loses that reason alone, and stays for the unsubscribing.
   */
  delete(handle: Handle, accountId: string, address: string): Promise<void>
  /** Of addresses, given by `addressKey`, those that are on the list. */
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
    async list(handle, accountId, { reason, address, limit, cursor }) {
      const rows = await selectSuppressions(handle, accountId, {
        reason,
        addressKey: address === undefined ? undefined : addressKey(readAddress(address, 'query.address')),
        before: decodeCursor('suppression', cursor),
        limit: limit + 1,
      })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: toSuppression })
    },
    async get(handle, accountId, address) {
      const page = { reason: undefined, addressKey: addressKey(address), before: undefined, limit: 1 }
      const [row] = isStorable(address) ? await selectSuppressions(handle, accountId, page) : []
      if (row === undefined) throw notSuppressed()
      return toSuppression(row)
    },
    async delete(handle, accountId, address) {
      const remove = (trx: Trx) => deleteSuppression(trx, accountId, addressKey(address))
      if (isStorable(address) && (await inTransaction(handle, remove))) return
      throw notSuppressed()
    },
    async find(handle, accountId, addressKeys) {
      if (addressKeys.length === 0) return new Map()
      const rows = await findSuppressions(handle, accountId, addressKeys)
      return new Map(rows.map((row) => [row.address_key, { reason: row.reason, since: row.created_at }]))
    },
  }
}

/** What cannot be an address cannot be there either; nor could the database look for it. */
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

/** Where entries come from that an older version has written. */
const usualSources: Readonly<Record<SuppressionReason, SuppressionSource>> = {
  hard_bounce: 'smtp_answer',
  complaint: 'feedback_report',
  unsubscribe: 'unsubscribe_link',
  manual: 'api',
}
