import type { Account as AccountWithUsage } from '../../contract/account.ts'
import type { Member } from '../../contract/members.ts'
import type { AccountDetails, AccountListQuery, ListedAccount, Plans } from '../../contract/operator.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import type { RateLimits } from '../accounts/plans.ts'
import type { AccountService } from '../accounts/service.ts'
import { record } from '../audit-log/record.ts'
import { type Handle, inTransaction } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { brokenRule } from '../shared/errors.ts'
import type { Author, Scope } from '../shared/scope.ts'

/** Operations on accounts for the operator of the service. Throws DomainErrors. */
export type OperatorAccountService = {
  /** Newest first. */
  list(handle: Handle, query: AccountListQuery): Promise<Page<ListedAccount>>
  /** Throws `not_found`. */
  get(handle: Handle, id: string): Promise<AccountDetails>
  /** Gives an account another plan, and tells it in its audit log. Throws `not_found`, and `rule_violation`. */
  changePlan(handle: Handle, author: Author, change: { id: string; plan: string }): Promise<AccountDetails>
  /** Throws `not_found`. */
  members(handle: Handle, id: string, page: PageQuery): Promise<Page<Member>>
  plans(): Plans
}

export type OperatorAccountOptions = {
  clock: Clock
  accounts: AccountService
  rateLimits: RateLimits
  /** Returns an account with its usage. Throws `not_found`. */
  usage: (handle: Handle, scope: Scope) => Promise<AccountWithUsage>
  /** Returns when keys of accounts were last used. */
  lastUses: (handle: Handle, accountIds: readonly string[]) => Promise<Map<string, Date>>
  members: (handle: Handle, accountId: string, page: PageQuery) => Promise<Page<Member>>
}

export function createOperatorAccountService(options: OperatorAccountOptions): OperatorAccountService {
  const { clock, accounts, rateLimits, usage, lastUses, members } = options

  async function get(handle: Handle, id: string): Promise<AccountDetails> {
    const account = await usage(handle, { accountId: id, mode: 'live' })
    const used = await lastUses(handle, [id])
    return { ...account, lastUsedAt: used.get(id)?.toISOString() ?? null }
  }

  return {
    get,
    async list(handle, query) {
      const { data, nextCursor } = await accounts.page(handle, query)
      const ids = data.map(({ id }) => id)
      const used = await lastUses(handle, ids)
      return {
        data: data.map((account) => ({ ...account, lastUsedAt: used.get(account.id)?.toISOString() ?? null })),
        nextCursor,
      }
    },
    async changePlan(handle, author, { id, plan }) {
      if (!Object.hasOwn(rateLimits, plan)) {
        throw brokenRule('body.plan', `must be one of the plans of RATE_LIMITS: ${Object.keys(rateLimits).join(', ')}`)
      }
      await inTransaction(handle, async (trx) => {
        const before = await accounts.changePlan(trx, id, plan)
        if (before.plan === plan) return
        const target = { type: 'account', id, name: before.name } as const
        const details = { from: before.plan, to: plan }
        await record(trx, {
          accountId: id,
          at: clock.now(),
          author,
          action: 'account.plan_changed',
          target,
          details,
        })
      })
      return get(handle, id)
    },
    async members(handle, id, page) {
      await accounts.assertExists(handle, id)
      return members(handle, id, page)
    },
    plans() {
      const all = Object.entries(rateLimits).map(([name, requestsPerMinute]) => ({ name, requestsPerMinute }))
      return { data: all.toSorted((one, other) => one.requestsPerMinute - other.requestsPerMinute) }
    },
  }
}
