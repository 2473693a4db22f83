import type { Page } from '../../contract/pagination.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { DomainError } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import {
  type AccountRow,
  hasAccount,
  insertAccount,
  lockAccountRow,
  lockFirstAccount,
  selectAccountPage,
  selectAccounts,
  updatePlan,
} from './queries.ts'

export type Account = { id: string; name: string; plan: string; createdAt: string }

/** The tenants. Throws DomainErrors. */
export type AccountService = {
  create(handle: Handle, account: { name: string; plan: string }): Promise<Account>
  /** Returns all accounts, oldest first. */
  list(handle: Handle): Promise<Account[]>
  /** Returns accounts whose name or id begins with `search`, newest first. */
  page(handle: Handle, page: AccountPageQuery): Promise<Page<Account>>
  /** Gives an account another plan. Returns the account as it was. Throws `not_found`. */
  changePlan(trx: Trx, id: string, plan: string): Promise<Account>
  /** Throws `not_found` when there is no such account. */
  assertExists(handle: Handle, id: string): Promise<void>
  /**
   * Creates an account when there is none yet. Returns null when there is one. Of concurrent transactions in several
   * processes, one creates it; the others wait until that one has ended.
   */
  createFirst(trx: Trx, options: { plan: string }): Promise<Account | null>
}

export type AccountPageQuery = { limit: number; cursor?: string | undefined; search?: string | undefined }

export function createAccountService({ clock }: { clock: Clock }): AccountService {
  async function create(handle: Handle, { name, plan }: { name: string; plan: string }): Promise<Account> {
    const at = clock.now()
    return toAccount(await insertAccount(handle, { id: newId('account', at), name, plan, at }))
  }

  return {
    create,
    async list(handle) {
      const rows = await selectAccounts(handle)
      return rows.map(toAccount)
    },
    async page(handle, { limit, cursor, search }) {
      const after = decodeCursor('account', cursor)
      const { rows, lookedTo } = await selectAccountPage(handle, { after, limit: limit + 1, search })
      return pageOfRows(rows, { limit, idOf: ({ id }) => id, toItem: toAccount, lookedTo })
    },
    async changePlan(trx, id, plan) {
      const before = await lockAccountRow(trx, id)
      if (before === undefined) throw noAccount(id)
      if (before.plan !== plan) await updatePlan(trx, id, plan)
      return toAccount(before)
    },
    async assertExists(handle, id) {
      if (await hasAccount(handle, id)) return
      throw noAccount(id)
    },
    async createFirst(trx, { plan }) {
      await lockFirstAccount(trx)
      return (await hasAccount(trx)) ? null : create(trx, { name: 'First account', plan })
    },
  }
}

/** The error for an account that is not there. */
export function noAccount(id: string): DomainError {
  return new DomainError('not_found', `There is no account with the id "${id}".`)
}

function toAccount(row: AccountRow): Account {
  return { id: row.id, name: row.name, plan: row.plan, createdAt: row.created_at.toISOString() }
}
