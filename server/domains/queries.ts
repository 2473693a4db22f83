import { type Selectable, sql } from 'kysely'
import type { Handle, Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { DomainsTable } from '../database/tables/domains.ts'
import type { Findings } from './look-up.ts'
import type { Progress } from './progress.ts'

/** All but the private keys, which nobody needs here. */
const columns = [
  'id',
  'account_id',
  'name',
  'return_path',
  'status',
  'rsa_selector',
  'rsa_public_key',
  'ed25519_selector',
  'ed25519_public_key',
  'findings',
  'pending_since',
  'check_count',
  'next_check_at',
  'last_checked_at',
  'verified_at',
  'created_at',
  'updated_at',
] as const satisfies readonly (keyof DomainsTable)[]

export type DomainRow = Pick<Selectable<DomainsTable>, (typeof columns)[number]>

export type NewDomain = Progress & {
  id: string
  accountId: string
  name: string
  returnPath: string
  rsa: NewKey
  ed25519: NewKey
  at: Date
}

type NewKey = { selector: string; publicKey: string; sealedPrivateKey: Buffer }

/** Answers undefined, and inserts nothing, where the account has a domain of the name. */
export async function insertDomain(handle: Handle, domain: NewDomain): Promise<DomainRow | undefined> {
  const { id, accountId, name, returnPath, rsa, ed25519, at, ...progress } = domain
  return handle
    .insertInto('domains')
    .values({
      ...progress,
      id,
      account_id: accountId,
      name,
      return_path: returnPath,
      rsa_selector: rsa.selector,
      rsa_public_key: rsa.publicKey,
      rsa_private_key: rsa.sealedPrivateKey,
      ed25519_selector: ed25519.selector,
      ed25519_public_key: ed25519.publicKey,
      ed25519_private_key: ed25519.sealedPrivateKey,
      findings: '{}',
      created_at: at,
      updated_at: at,
    })
    .onConflict((conflict) => conflict.columns(['account_id', 'name']).doNothing())
    .returning(columns)
    .executeTakeFirst()
}

export async function hasDomain(handle: Handle, accountId: string, name: string): Promise<boolean> {
  const row = await handle
    .selectFrom('domains')
    .select('id')
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .executeTakeFirst()
  return row !== undefined
}

/** How many domains an account has. Until the transaction ends, nobody else who asks is answered. */
export async function countDomains(trx: Trx, accountId: string): Promise<number> {
  await trx.selectFrom('accounts').select('id').where('id', '=', accountId).forNoKeyUpdate().execute()
  const { count } = await trx
    .selectFrom('domains')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function findDomain(handle: Handle, accountId: string, id: string): Promise<DomainRow | undefined> {
  return handle
    .selectFrom('domains')
    .select(columns)
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .executeTakeFirst()
}

/** Keeps it from being changed by others until the transaction ends. */
export async function lockDomain(trx: Trx, id: string): Promise<DomainRow | undefined> {
  return trx.selectFrom('domains').select(columns).where('id', '=', id).forNoKeyUpdate().executeTakeFirst()
}

/** @param page.after The row the page begins behind, newest first. */
export async function selectDomains(
  handle: Handle,
  accountId: string,
  page: { after?: string | undefined; limit: number },
): Promise<DomainRow[]> {
  let query = handle.selectFrom('domains').select(columns).where('account_id', '=', accountId)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

/** Writes down what a check found and where the domain stands by it. */
export async function updateDomain(
  trx: Trx,
  id: string,
  { findings, progress, checkedAt, at }: { findings: Findings; progress: Progress; checkedAt: Date; at: Date },
): Promise<DomainRow> {
  return trx
    .updateTable('domains')
    .set({ ...progress, findings: JSON.stringify(findings), last_checked_at: checkedAt, updated_at: at })
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()
}

/** Answers the name of what was there. */
export async function deleteDomain(trx: Trx, accountId: string, id: string): Promise<string | undefined> {
  const row = await trx
    .deleteFrom('domains')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .returning('name')
    .executeTakeFirst()
  return row?.name
}

/** Of the names, the domain of the account that is verified, if any is; and the longest among several. */
export async function findCovering(handle: Handle, accountId: string, names: readonly string[]) {
  const statement = handle
    .selectFrom('domains')
    .select(['id', 'name', 'status'])
    .where('account_id', '=', accountId)
    .where('name', '=', sql<string>`ANY(${names}::text[])`)
    .orderBy(sql`status = 'verified'`, 'desc')
    .orderBy(sql`length(name)`, 'desc')
    .limit(1)
  // Every email that is sent asks.
  const [domain] = await executePrepared(handle, { name: 'find_covering_domain' }, statement)
  return domain
}

/**
 * Takes domains whose check is due, those that have waited the longest. Until `leasedUntil` no other
 * process takes them; if this one dies, they are checked then.
 */
export async function claimDomains(
  handle: Handle,
  { at, leasedUntil, limit }: { at: Date; leasedUntil: Date; limit: number },
): Promise<DomainRow[]> {
  const { rows } = await sql<DomainRow>`
    UPDATE domains SET next_check_at = ${leasedUntil}
    WHERE id = ANY(ARRAY(
      SELECT id FROM domains WHERE next_check_at <= ${at}
      ORDER BY next_check_at LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
    ))
    RETURNING ${sql.join(columns.map((column) => sql.ref(column)))}
  `.execute(handle)
  return rows
}
