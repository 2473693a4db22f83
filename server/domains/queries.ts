import { type Selectable, sql } from 'kysely'
import { maxRotations } from '../../contract/domains.ts'
import { lockAccount } from '../database/account-lock.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { DomainKeysTable, DomainsTable } from '../database/tables/domains.ts'
import type { RecordChecks } from './look-up.ts'
import type { PublishedKeys } from './records.ts'
import type { Progress } from './verification-state.ts'

/** All columns except the private keys, which are not needed here. */
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

/** A domain with its next and retired keys. */
export type DomainWithKeys = DomainRow & {
  /** Keys that sign as soon as their records are published. */
  next: NextKeys | null
  /** Newest first. */
  retired: readonly RetiredKeys[]
}

export type NextKeys = PublishedKeys & Pick<Selectable<DomainKeysTable>, 'id' | 'findings' | 'created_at'>
export type RetiredKeys = PublishedKeys & { id: string; retired_at: Date }

export type NewDomain = Progress & {
  id: string
  accountId: string
  name: string
  returnPath: string
  keys: NewKeys
  at: Date
}

export type NewKeys = { rsa: NewKey; ed25519: NewKey }
type NewKey = { selector: string; publicKey: string; sealedPrivateKey: Buffer }

function keyColumns({ rsa, ed25519 }: NewKeys) {
  return {
    rsa_selector: rsa.selector,
    rsa_public_key: rsa.publicKey,
    rsa_private_key: rsa.sealedPrivateKey,
    ed25519_selector: ed25519.selector,
    ed25519_public_key: ed25519.publicKey,
    ed25519_private_key: ed25519.sealedPrivateKey,
  }
}

/** Inserts a domain. Returns undefined when the account already has a domain of this name. */
export async function insertDomain(handle: Handle, domain: NewDomain): Promise<DomainRow | undefined> {
  const { id, accountId, name, returnPath, keys, at, ...progress } = domain
  return handle
    .insertInto('domains')
    .values({
      ...progress,
      ...keyColumns(keys),
      id,
      account_id: accountId,
      name,
      return_path: returnPath,
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

/** Locks an account and returns the number of its domains. */
export async function countDomains(trx: Trx, accountId: string): Promise<number> {
  await lockAccount(trx, accountId)
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

/** Locks a domain against changes until the transaction ends. */
export async function lockDomain(trx: Trx, id: string): Promise<DomainRow | undefined> {
  return trx.selectFrom('domains').select(columns).where('id', '=', id).forNoKeyUpdate().executeTakeFirst()
}

/** @param page.after Id of the last row of the page before. Newest first. */
export async function selectDomains(
  handle: Handle,
  accountId: string,
  page: { after?: string | undefined; limit: number },
): Promise<DomainRow[]> {
  let query = handle.selectFrom('domains').select(columns).where('account_id', '=', accountId)
  if (page.after !== undefined) query = query.where('id', '<', page.after)
  return query.orderBy('id', 'desc').limit(page.limit).execute()
}

/** Stores the results of a check and the new state of the domain. */
export async function updateDomain(
  trx: Trx,
  id: string,
  { findings, progress, checkedAt, at }: { findings: RecordChecks; progress: Progress; checkedAt: Date; at: Date },
): Promise<DomainRow> {
  return trx
    .updateTable('domains')
    .set({ ...progress, findings: JSON.stringify(findings), last_checked_at: checkedAt, updated_at: at })
    .where('id', '=', id)
    .returning(columns)
    .executeTakeFirstOrThrow()
}

/** Deletes a domain and returns its name, or undefined when there was none. */
export async function deleteDomain(trx: Trx, accountId: string, id: string): Promise<string | undefined> {
  const row = await trx
    .deleteFrom('domains')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .returning('name')
    .executeTakeFirst()
  return row?.name
}

/** Returns the domain of the account with one of the names. Prefers verified domains, then the longest name. */
export async function findCovering(handle: Handle, accountId: string, names: readonly string[]) {
  const statement = handle
    .selectFrom('domains')
    .select(['id', 'name', 'status'])
    .where('account_id', '=', accountId)
    .where('name', '=', sql<string>`ANY(${names}::text[])`)
    .orderBy(sql`status = 'verified'`, 'desc')
    .orderBy(sql`length(name)`, 'desc')
    .limit(1)
  // Prepared, because every email runs it.
  const [domain] = await executePrepared(handle, { name: 'find_covering_domain' }, statement)
  return domain
}

/** Returns what the last check of a domain of an account found. Undefined: there is no such domain. */
export async function findFindings(
  handle: Handle,
  accountId: string,
  name: string,
): Promise<DomainRow['findings'] | undefined> {
  const row = await handle
    .selectFrom('domains')
    .select('findings')
    .where('account_id', '=', accountId)
    .where('name', '=', name)
    .executeTakeFirst()
  return row?.findings
}

/** Returns the verified domain with the longest of `names`, of any account: the one added first if there are several. */
export async function findVerified(
  handle: Handle,
  names: readonly string[],
): Promise<{ id: string; returnPath: string } | undefined> {
  return handle
    .selectFrom('domains')
    .select(['id', 'return_path as returnPath'])
    .where('status', '=', 'verified')
    .where('name', '=', sql<string>`ANY(${names}::text[])`)
    .orderBy(sql`length(name)`, 'desc')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
}

/**
 * Claims domains whose check is due, the longest overdue first. No other process claims them until `leasedUntil`; if
 * this process dies, they are due again then.
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

/** Adds the next and retired keys to domains of one or several accounts. */
export async function withKeys(handle: Handle, domains: readonly DomainRow[]): Promise<DomainWithKeys[]> {
  if (domains.length === 0) return []
  const { rows } = await sql<Selectable<DomainKeysTable>>`
    SELECT k.id, k.domain_id, k.state, k.rsa_selector, k.rsa_public_key, k.ed25519_selector, k.ed25519_public_key,
      k.findings, k.created_at, k.retired_at
    FROM unnest(
      ${domains.map(({ account_id }) => account_id)}::text[],
      ${domains.map(({ id }) => id)}::text[]
    ) AS d (account_id, id)
    JOIN domain_keys k ON k.account_id = d.account_id AND k.domain_id = d.id
    ORDER BY k.id DESC
  `.execute(handle)
  const keys = Map.groupBy(rows, ({ domain_id }) => domain_id)
  return domains.map((domain) => {
    const ofDomain = keys.get(domain.id) ?? []
    return {
      ...domain,
      next: ofDomain.find(({ state }) => state === 'next') ?? null,
      retired: ofDomain.flatMap(({ retired_at, ...others }) =>
        retired_at === null ? [] : [{ ...others, retired_at }],
      ),
    }
  })
}

/** Inserts the next keys of a locked domain, and replaces those that were waiting. */
export async function insertNextKeys(
  trx: Trx,
  { account_id, id }: Pick<DomainRow, 'account_id' | 'id'>,
  { keys, at, nextCheckAt }: { keys: NewKeys; at: Date; nextCheckAt: Date | null },
): Promise<void> {
  await deleteNextKeys(trx, { account_id, id })
  await trx
    .insertInto('domain_keys')
    .values({
      ...keyColumns(keys),
      account_id,
      domain_id: id,
      state: 'next',
      created_at: at,
      next_check_at: nextCheckAt,
      retired_at: null,
    })
    .execute()
  await trx
    .updateTable('domains')
    .set({ updated_at: at })
    .where('account_id', '=', account_id)
    .where('id', '=', id)
    .execute()
}

async function deleteNextKeys(trx: Trx, { account_id, id }: Pick<DomainRow, 'account_id' | 'id'>): Promise<void> {
  await trx
    .deleteFrom('domain_keys')
    .where('account_id', '=', account_id)
    .where('domain_id', '=', id)
    .where('state', '=', 'next')
    .execute()
}

/** Stores the results of a check of the next keys of a domain. */
export async function updateNextKeys(
  trx: Trx,
  { account_id, id }: Pick<DomainRow, 'account_id' | 'id'>,
  { findings, nextCheckAt }: { findings: RecordChecks; nextCheckAt: Date | null },
): Promise<void> {
  await trx
    .updateTable('domain_keys')
    .set({ findings: JSON.stringify(findings), next_check_at: nextCheckAt })
    .where('account_id', '=', account_id)
    .where('domain_id', '=', id)
    .where('state', '=', 'next')
    .execute()
}

/**
 * Makes the next keys of a locked domain its signing keys, and stores the results for their records. With `keepUsed`,
 * the former keys are kept as retired, without their private parts, since email signed with them may be in transit.
 */
export async function takeUpNextKeys(
  trx: Trx,
  { account_id, id }: Pick<DomainRow, 'account_id' | 'id'>,
  { findings, keepUsed, at }: { findings: RecordChecks; keepUsed: boolean; at: Date },
): Promise<DomainRow> {
  if (keepUsed) {
    await sql`
      INSERT INTO domain_keys (account_id, domain_id, state, rsa_selector, rsa_public_key, ed25519_selector,
        ed25519_public_key, created_at, retired_at)
      SELECT account_id, id, 'retired', rsa_selector, rsa_public_key, ed25519_selector, ed25519_public_key, ${at}, ${at}
      FROM domains WHERE account_id = ${account_id} AND id = ${id}
    `.execute(trx)
    await sql`
      DELETE FROM domain_keys WHERE account_id = ${account_id} AND domain_id = ${id} AND id IN (
        SELECT id FROM domain_keys WHERE account_id = ${account_id} AND domain_id = ${id} AND state = 'retired'
        ORDER BY id DESC OFFSET ${maxRotations}
      )
    `.execute(trx)
  }
  const { rows } = await sql<DomainRow>`
    UPDATE domains SET
      rsa_selector = k.rsa_selector, rsa_public_key = k.rsa_public_key, rsa_private_key = k.rsa_private_key,
      ed25519_selector = k.ed25519_selector, ed25519_public_key = k.ed25519_public_key,
      ed25519_private_key = k.ed25519_private_key,
      findings = domains.findings || ${JSON.stringify(findings)}::jsonb, updated_at = ${at}
    FROM domain_keys k
    WHERE domains.account_id = ${account_id} AND domains.id = ${id}
      AND k.account_id = domains.account_id AND k.domain_id = domains.id AND k.state = 'next'
    RETURNING ${sql.join(columns.map((column) => sql.ref(`domains.${column}`)))}
  `.execute(trx)
  await deleteNextKeys(trx, { account_id, id })
  return rows[0] as DomainRow
}

/** Claims domains whose next keys are due for a check, as `claimDomains` does. */
export async function claimNextKeys(
  handle: Handle,
  { at, leasedUntil, limit }: { at: Date; leasedUntil: Date; limit: number },
): Promise<DomainRow[]> {
  const { rows } = await sql<DomainRow>`
    WITH due AS (
      SELECT account_id, domain_id, id FROM domain_keys WHERE next_check_at <= ${at}
      ORDER BY next_check_at LIMIT ${limit} FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE domain_keys k SET next_check_at = ${leasedUntil}
    FROM due JOIN domains d ON d.account_id = due.account_id AND d.id = due.domain_id
    WHERE k.account_id = due.account_id AND k.domain_id = due.domain_id AND k.id = due.id
    RETURNING ${sql.join(columns.map((column) => sql.ref(`d.${column}`)))}
  `.execute(handle)
  return rows
}
