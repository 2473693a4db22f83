import type { DomainDeliverability } from '../../contract/deliverability.ts'
import {
  type CreateDomain,
  type Domain,
  defaultReturnPath,
  maxDomains,
  maxReturnPathLength,
  type RotateKeys,
  retiredDays,
} from '../../contract/domains.ts'
import type { Mode } from '../../contract/mode.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import { record } from '../audit-log/record.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { Outbox } from '../outbox/append.ts'
import { sealPrivateKey } from '../secrets/private-keys.ts'
import type { SecretBox } from '../secrets/secret-box.ts'
import { brokenRule, DomainError, notFound } from '../shared/errors.ts'
import { newId } from '../shared/ids.ts'
import { decodeCursor, pageOfRows } from '../shared/pagination.ts'
import type { AuthoredScope, Scope } from '../shared/scope.ts'
import {
  type Checked,
  type CheckOptions,
  check,
  inspectDomain,
  isTestName,
  obstacleTo,
  recordCheck,
} from './check-domain.ts'
import { type OwnKeys, readOwnKeys, type SelectedKeys } from './client-keys.ts'
import { createDkimKeyMaker, type MakeDkimKeys, makeEd25519Keys } from './generate-keys.ts'
import type { RecordChecks } from './look-up.ts'
import { readDomainName } from './name.ts'
import {
  countDomains,
  type DomainRow,
  type DomainWithKeys,
  deleteDomain,
  findCovering,
  findDomain,
  findFindings,
  findVerified,
  hasDomain,
  insertDomain,
  insertNextKeys,
  lockDomain,
  type NewDomain,
  type NewKeys,
  type RetiredKeys,
  selectDomains,
  withKeys,
} from './queries.ts'
import { keyRecordsOf, nextRecordsOf, recordsOf, returnPathOf, selectorsOf, type WantedRecord } from './records.ts'
import { beginning, nextKeyCheckAt } from './verification-state.ts'

/** Use cases for sending domains, which both modes share. Throws DomainErrors. Every call is limited to one account. */
export type DomainService = {
  /**
   * Adds a domain with the given keys or new ones, and emits `domain.created`. Throws `rule_violation` for an invalid
   * name or key, and `conflict` when the account already has the name or the most domains. While email is captured, a
   * name below `.test` is verified at once. Do not call it in a transaction, because making keys takes long.
   */
  create(handle: Handle, scope: AuthoredScope, domain: CreateDomain): Promise<Domain>
  /** Returns domains, newest first. */
  list(handle: Handle, accountId: string, query: PageQuery): Promise<Page<Domain>>
  get(handle: Handle, accountId: string, id: string): Promise<Domain>
  /** Deletes a domain and emits `domain.deleted`. */
  delete(handle: Handle, scope: AuthoredScope, id: string): Promise<void>
  /** Looks up the records now, and stores the result: see `recordCheck`. Do not call it in a transaction. */
  verify(handle: Handle, scope: Scope, id: string): Promise<Domain>
  /**
   * Looks up what receivers look at, and counts bounces. Changes nothing: what it finds of the records is not stored. Do
   * not call it in a transaction.
   */
  deliverability(handle: Handle, scope: Scope, id: string): Promise<DomainDeliverability>
  /**
   * Adds next keys, given or new, and replaces next keys that were waiting. They sign as soon as a check has found
   * their records. Throws `rule_violation` for an invalid key and `conflict` for a selector that the domain uses.
   * While email is captured, the keys of a name below `.test` sign at once. Do not call it in a transaction.
   */
  rotateKeys(handle: Handle, scope: AuthoredScope, id: string, keys: RotateKeys): Promise<Domain>
}

export type DomainServiceOptions = CheckOptions & {
  clock: Clock
  outbox: Outbox
  secretBox: SecretBox
  /** Default: `createDkimKeyMaker`. */
  makeKeys?: MakeDkimKeys
  /** Counts the bounces of a domain: see `countBounces` of the emails. */
  countBounces: (handle: Handle, scope: Scope, domainId: string) => Promise<DomainDeliverability['bounces']>
}

export function createDomainService(options: DomainServiceOptions): DomainService {
  const { clock, outbox, secretBox, isCaptured } = options
  const makeKeys = options.makeKeys ?? createDkimKeyMaker()

  /** @param id A new id, for the selectors of keys that are made here. */
  async function newKeys(accountId: string, { own, id }: { own: OwnKeys; id: string }): Promise<NewKeys> {
    // Does not make an RSA key when one is given, because that takes much CPU time.
    const made = own.rsa === null ? await makeKeys(accountId) : { rsa: own.rsa, ed25519: await makeEd25519Keys() }
    const selectors = selectorsOf(id)
    return {
      rsa: sealed(own.rsa ?? { ...made.rsa, selector: selectors.rsa }),
      ed25519: sealed(own.ed25519 ?? { ...made.ed25519, selector: selectors.ed25519 }),
    }
  }

  function sealed({ selector, publicKey, privateKey }: SelectedKeys) {
    return { selector, publicKey, sealedPrivateKey: sealPrivateKey(secretBox, privateKey) }
  }

  async function audit(
    trx: Trx,
    { accountId, author }: AuthoredScope,
    action: 'domain.created' | 'domain.keys_rotated' | 'domain.deleted',
    { id, name }: Pick<DomainRow, 'id' | 'name'>,
  ): Promise<void> {
    await record(trx, { accountId, at: clock.now(), author, action, target: { type: 'domain', id, name } })
  }

  async function insert(trx: Trx, domain: NewDomain, scope: AuthoredScope): Promise<DomainWithKeys> {
    if ((await countDomains(trx, domain.accountId)) >= maxDomains) throw tooMany()
    const row = await insertDomain(trx, domain)
    if (row === undefined) throw alreadyThere(domain.name)
    const data = { domainId: row.id, domain: row.name, status: 'pending' as const }
    await outbox.append(trx, scope, [{ type: 'domain.created', data }])
    await audit(trx, scope, 'domain.created', row)
    return { ...row, next: null, retired: [] }
  }

  async function find(handle: Handle, accountId: string, id: string): Promise<DomainWithKeys> {
    const row = await findDomain(handle, accountId, id)
    return keysOf(handle, row, id)
  }

  async function keysOf(handle: Handle, row: DomainRow | undefined, id: string): Promise<DomainWithKeys> {
    const [domain] = row === undefined ? [] : await withKeys(handle, [row])
    if (domain === undefined) throw notFound('domain', id)
    return domain
  }

  /** Checks the domain at once when that needs no DNS queries: a name below `.test` while email is captured. */
  async function settleTested(trx: Trx, domain: DomainWithKeys, mode: Mode): Promise<DomainWithKeys> {
    return isCaptured && isTestName(domain.name) ? settle(trx, await check(domain, options), mode) : domain
  }

  async function settle(trx: Trx, checked: Checked, mode: Mode): Promise<DomainWithKeys> {
    const settled = await recordCheck(trx, options, { checked, by: 'request', mode, at: clock.now() })
    if (settled === undefined) throw notFound('domain', checked.domain.id)
    return settled
  }

  return {
    async create(handle, scope, { name: given, returnPath: below = defaultReturnPath, dkimKeys }) {
      const { accountId, mode } = scope
      const { name, fault } = readDomainName(given)
      if (name === null) throw brokenRule('body.name', fault)
      const returnPath = returnPathOf(name, below)
      if (returnPath.length > maxReturnPathLength) {
        throw brokenRule('body.returnPath', `must be at most ${maxReturnPathLength} characters with the domain`)
      }
      // Checked before making keys, which is slow. Of concurrent requests, all but one fail at the insert.
      if (await hasDomain(handle, accountId, name)) throw alreadyThere(name)
      const own = await readOwnKeys(dkimKeys, name)
      const id = newId('domain', clock.now())
      const keys = await newKeys(accountId, { own, id })
      const at = clock.now()
      const domain = { ...beginning(at), id, accountId, name, returnPath, keys, at }
      const row = await inTransaction(handle, async (trx) => settleTested(trx, await insert(trx, domain, scope), mode))
      return toDomain(row, options)
    },
    async list(handle, accountId, { limit, cursor }) {
      const after = decodeCursor('domain', cursor)
      const rows = await withKeys(handle, await selectDomains(handle, accountId, { after, limit: limit + 1 }))
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: (row) => toDomain(row, options) })
    },
    async get(handle, accountId, id) {
      return toDomain(await find(handle, accountId, id), options)
    },
    async delete(handle, scope, id) {
      await inTransaction(handle, async (trx) => {
        const name = await deleteDomain(trx, scope.accountId, id)
        if (name === undefined) throw notFound('domain', id)
        await outbox.append(trx, scope, [{ type: 'domain.deleted', data: { domainId: id, domain: name } }])
        await audit(trx, scope, 'domain.deleted', { id, name })
      })
    },
    async verify(handle, { accountId, mode }, id) {
      const checked = await check(await find(handle, accountId, id), options)
      return toDomain(await inTransaction(handle, (trx) => settle(trx, checked, mode)), options)
    },
    async deliverability(handle, scope, id) {
      const domain = await find(handle, scope.accountId, id)
      const [checks, bounces] = await Promise.all([
        inspectDomain(domain, options),
        options.countBounces(handle, scope, id),
      ])
      return { domainId: id, checkedAt: clock.now().toISOString(), checks, bounces }
    },
    async rotateKeys(handle, scope, id, { dkimKeys }) {
      const { accountId, mode } = scope
      const { name } = await find(handle, accountId, id)
      const own = await readOwnKeys(dkimKeys, name)
      const keys = await newKeys(accountId, { own, id: newId('domain', clock.now()) })
      const domain = await inTransaction(handle, async (trx) => {
        const locked = await keysOf(trx, await lockDomain(trx, id), id)
        refuseUsed(locked, keys, clock.now())
        const at = clock.now()
        await insertNextKeys(trx, locked, { keys, at, nextCheckAt: nextKeyCheckAt(at, at) })
        await audit(trx, scope, 'domain.keys_rotated', locked)
        return settleTested(trx, await find(trx, accountId, id), mode)
      })
      return toDomain(domain, options)
    },
  }
}

/** Throws `conflict` when a selector is in use: by a signing key, or by a retired one whose email may be in transit. */
function refuseUsed(domain: DomainWithKeys, { rsa, ed25519 }: NewKeys, at: Date): void {
  const inUse = [domain, ...domain.retired.filter((keys) => removableAt(keys) > at)]
  const selectors = inUse.flatMap((keys) => [keys.rsa_selector, keys.ed25519_selector])
  const used = [rsa.selector, ed25519.selector].find((selector) => selectors.includes(selector))
  if (used === undefined) return
  throw new DomainError(
    'conflict',
    `The record at the selector "${used}" is that of a key which signs or has signed: publish the new key at another selector.`,
  )
}

function removableAt({ retired_at }: RetiredKeys): Date {
  return new Date(retired_at.getTime() + retiredDays * 24 * 3_600_000)
}

export type SendingDomain = { id: string; name: string; status: 'pending' | 'verified' | 'failed' }

/**
 * Returns the domain of the account that covers `domainName` (lower case, A-labels): the name itself or a parent, so
 * that signatures align with it (RFC 7489 §3.1.1, relaxed). Prefers verified domains, then the closest. Returns null
 * when there is none.
 */
export async function findSendingDomain(
  handle: Handle,
  accountId: string,
  domainName: string,
): Promise<SendingDomain | null> {
  return (await findCovering(handle, accountId, coveringNames(domainName))) ?? null
}

/**
 * Returns true when the last check of a domain of the account (lower case, A-labels) found no DMARC record that receivers
 * apply, neither of the domain nor of a parent. False also when that is not known: nothing is looked up in the DNS.
 */
export async function lacksDmarc(handle: Handle, accountId: string, domainName: string): Promise<boolean> {
  const { dmarc } = (await findFindings(handle, accountId, domainName)) ?? {}
  return dmarc !== undefined && ['missing', 'multiple', 'dangling'].includes(dmarc.status)
}

/**
 * Returns the verified domain that covers `domainName`, as `findSendingDomain` does, of any account: for the emails of
 * the service itself. The account that verified it controls its DNS.
 */
export async function findServiceDomain(
  handle: Handle,
  domainName: string,
): Promise<{ id: string; returnPath: string } | null> {
  return (await findVerified(handle, coveringNames(domainName))) ?? null
}

/** Returns a domain name and its parents with two labels or more, the longest first. */
function coveringNames(domainName: string): string[] {
  const labels = domainName.split('.')
  return labels.slice(0, -1).map((_, index) => labels.slice(index).join('.'))
}

function alreadyThere(name: string): DomainError {
  return new DomainError('conflict', `The account has the domain "${name}" already.`)
}

function tooMany(): DomainError {
  const most = maxDomains.toLocaleString('en')
  return new DomainError('conflict', `The account has ${most} domains, which is the most it can: delete one first.`)
}

function toDomain(domain: DomainWithKeys, options: Pick<CheckOptions, 'sender' | 'isCaptured'>): Domain {
  const { next, retired } = domain
  const withFinding = (record: WantedRecord, findings: RecordChecks) => ({
    ...record,
    ...(obstacleTo(record, options) ?? findings[record.purpose] ?? { status: 'pending' as const, hint: null }),
  })
  return {
    id: domain.id,
    name: domain.name,
    returnPath: domain.return_path.slice(0, -`.${domain.name}`.length),
    status: domain.status,
    records: [
      ...recordsOf(domain, options.sender).map((record) => withFinding(record, domain.findings)),
      ...(next === null ? [] : nextRecordsOf(domain.name, next).map((record) => withFinding(record, next.findings))),
    ],
    retiredRecords: retired.flatMap((keys) =>
      keyRecordsOf(domain.name, keys).map(({ purpose, type, name, value }) => ({
        purpose,
        type,
        name,
        value,
        retiredAt: keys.retired_at.toISOString(),
        removableAt: removableAt(keys).toISOString(),
      })),
    ),
    lastCheckedAt: domain.last_checked_at?.toISOString() ?? null,
    nextCheckAt: domain.next_check_at?.toISOString() ?? null,
    verifiedAt: domain.verified_at?.toISOString() ?? null,
    createdAt: domain.created_at.toISOString(),
    updatedAt: domain.updated_at.toISOString(),
  }
}
