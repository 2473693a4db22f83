import { type Selectable, sql } from 'kysely'
import { afterAllIds, type FittingPage, selectFitting } from '../database/bounded-lists.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { AccountsTable } from '../database/tables/accounts.ts'

export type AccountRow = Selectable<AccountsTable>

/** Advisory lock, so that of processes that start at once only one creates the first account. */
const firstAccountLock = 'postern first account'

export async function lockFirstAccount(trx: Trx): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${firstAccountLock}, 0))`.execute(trx)
}

export async function insertAccount(
  handle: Handle,
  account: { id: string; name: string; plan: string; at: Date },
): Promise<AccountRow> {
  return handle
    .insertInto('accounts')
    .values({ id: account.id, name: account.name, plan: account.plan, created_at: account.at })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function findAccount(handle: Handle, id: string): Promise<AccountRow | undefined> {
  return handle.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst()
}

/** Locks an account for a change. */
export async function lockAccountRow(trx: Trx, id: string): Promise<AccountRow | undefined> {
  return trx.selectFrom('accounts').selectAll().where('id', '=', id).forNoKeyUpdate().executeTakeFirst()
}

export async function updatePlan(trx: Trx, id: string, plan: string): Promise<void> {
  await trx.updateTable('accounts').set({ plan }).where('id', '=', id).execute()
}

/**
 * Returns accounts with ids below `after`, the newest first. With `search`, those whose name, in any letter case, or id
 * begins with it, of 10,000: see `selectFitting`.
 */
export async function selectAccountPage(
  handle: Handle,
  { after, limit, search }: { after: string | undefined; limit: number; search: string | undefined },
): Promise<FittingPage<AccountRow>> {
  const fits =
    search === undefined
      ? sql<boolean>`true`
      : sql<boolean>`(starts_with(lower(name), lower(${search})) OR starts_with(id, ${search}))`
  return selectFitting<AccountRow>(handle, {
    rows: sql`SELECT * FROM accounts WHERE id < ${after ?? afterAllIds} ORDER BY id DESC`,
    fits,
    as: 'listed',
    columns: sql`listed.*`,
    limit,
  })
}

/** Returns all accounts, oldest first. */
export async function selectAccounts(handle: Handle): Promise<AccountRow[]> {
  return handle.selectFrom('accounts').selectAll().orderBy('id').execute()
}

export async function hasAccount(handle: Handle, id?: string): Promise<boolean> {
  const row = await handle
    .selectFrom('accounts')
    .select('id')
    .$if(id !== undefined, (query) => query.where('id', '=', id ?? ''))
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}
