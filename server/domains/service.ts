import {
  type CreateDomain,
  type Domain,
  defaultReturnPath,
  maxDomains,
  maxReturnPathLength,
} from '../../contract/domains.ts'
import type { Page, PageQuery } from '../../contract/pagination.ts'
import type { Clock } from '../clock.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import { DomainError, invalidField, notFound } from '../errors.ts'
import { newId } from '../ids.ts'
import type { Outbox } from '../outbox/append.ts'
import { decodeCursor, pageOfRows } from '../pagination.ts'
import { sealPrivateKey } from '../private-keys.ts'
import type { SecretBox } from '../secrets.ts'
import { type CheckOptions, check, isTestName, obstacleTo, settleCheck } from './checking.ts'
import { createDkimKeyMaker, type DkimKeyPair, type MakeDkimKeys } from './keys.ts'
import { readDomainName } from './name.ts'
import { beginning } from './progress.ts'
import {
  countDomains,
  type DomainRow,
  deleteDomain,
  findCovering,
  findDomain,
  hasDomain,
  insertDomain,
  type NewDomain,
  selectDomains,
} from './queries.ts'
import { recordsOf, returnPathOf, selectorsOf } from './records.ts'

/** Use cases around sending domains. Throws DomainErrors; every call is limited to one account. */
export type DomainService = {
  /**
   * Makes the keys of a domain and emits `domain.created`. `validation_error` for a name that is none, and
   * `conflict` for one the account has already, or for one more than it may have. Under capture, one below
   * `.test` is verified at once. Not to be called in a transaction: the keys take their time.
   */
  create(handle: Handle, accountId: string, domain: CreateDomain): Promise<Domain>
  /** Newest first. */
  list(handle: Handle, accountId: string, query: PageQuery): Promise<Page<Domain>>
  get(handle: Handle, accountId: string, id: string): Promise<Domain>
  /** Emits `domain.deleted`. */
  delete(handle: Handle, accountId: string, id: string): Promise<void>
  /** Looks the records up now: see `settleCheck`. Not to be called in a transaction. */
  verify(handle: Handle, accountId: string, id: string): Promise<Domain>
}

export type DomainServiceOptions = CheckOptions & {
  clock: Clock
  outbox: Outbox
  secretBox: SecretBox
  /** Default: `createDkimKeyMaker`. */
  makeKeys?: MakeDkimKeys
}

export function createDomainService(options: DomainServiceOptions): DomainService {
  const { clock, outbox, secretBox, isCaptured } = options
  const makeKeys = options.makeKeys ?? createDkimKeyMaker()

  async function newDomain(
    accountId: string,
    { name, returnPath }: Pick<NewDomain, 'name' | 'returnPath'>,
  ): Promise<NewDomain> {
    const { rsa, ed25519 } = await makeKeys(accountId)
    const at = clock.now()
    const id = newId('domain', at)
    const selectors = selectorsOf(id)
    return {
      ...beginning(at),
      id,
      accountId,
      name,
      returnPath,
      rsa: { selector: selectors.rsa, ...sealed(rsa) },
      ed25519: { selector: selectors.ed25519, ...sealed(ed25519) },
      at,
    }
  }

  function sealed({ publicKey, privateKey }: DkimKeyPair) {
    return { publicKey, sealedPrivateKey: sealPrivateKey(secretBox, privateKey) }
  }

  async function insert(trx: Trx, domain: NewDomain): Promise<DomainRow> {
    if ((await countDomains(trx, domain.accountId)) >= maxDomains) throw tooMany()
    const row = await insertDomain(trx, domain)
    if (row === undefined) throw alreadyThere(domain.name)
    const data = { domainId: row.id, domain: row.name, status: 'pending' as const }
    await outbox.append(trx, row.account_id, [{ type: 'domain.created', data }])
    return row
  }

  async function find(handle: Handle, accountId: string, id: string): Promise<DomainRow> {
    const row = await findDomain(handle, accountId, id)
    if (row === undefined) throw notFound('domain', id)
    return row
  }

  async function settle(trx: Trx, row: DomainRow): Promise<DomainRow> {
    const findings = await check(row, options)
    const settled = await settleCheck(trx, options, { id: row.id, findings, by: 'request', at: clock.now() })
    if (settled === undefined) throw notFound('domain', row.id)
    return settled
  }

  return {
    async create(handle, accountId, { name: given, returnPath: below = defaultReturnPath }) {
      const { name, fault } = readDomainName(given)
      if (name === null) throw invalidField('body.name', fault)
      const returnPath = returnPathOf(name, below)
      if (returnPath.length > maxReturnPathLength) {
        throw invalidField('body.returnPath', `must be at most ${maxReturnPathLength} characters with the domain`)
      }
      // Keys are not made in vain; of two at once, one finds out when it is inserted.
      if (await hasDomain(handle, accountId, name)) throw alreadyThere(name)
      const domain = await newDomain(accountId, { name, returnPath })
      const row = await inTransaction(handle, async (trx) => {
        const inserted = await insert(trx, domain)
        return isCaptured && isTestName(name) ? settle(trx, inserted) : inserted
      })
      return toDomain(row, options)
    },
    async list(handle, accountId, { limit, cursor }) {
      const after = decodeCursor('domain', cursor)
      const rows = await selectDomains(handle, accountId, { after, limit: limit + 1 })
      return pageOfRows(rows, { limit, idOf: (row) => row.id, toItem: (row) => toDomain(row, options) })
    },
    async get(handle, accountId, id) {
      return toDomain(await find(handle, accountId, id), options)
    },
    async delete(handle, accountId, id) {
      await inTransaction(handle, async (trx) => {
        const name = await deleteDomain(trx, accountId, id)
        if (name === undefined) throw notFound('domain', id)
        await outbox.append(trx, accountId, [{ type: 'domain.deleted', data: { domainId: id, domain: name } }])
      })
    },
    async verify(handle, accountId, id) {
      const row = await find(handle, accountId, id)
      const findings = await check(row, options)
      const settled = await inTransaction(handle, (trx) => {
        return settleCheck(trx, options, { id, findings, by: 'request', at: clock.now() })
      })
      if (settled === undefined) throw notFound('domain', id)
      return toDomain(settled, options)
    },
  }
}

export type SendingDomain = { id: string; name: string; status: 'pending' | 'verified' | 'failed' }

/**
 * The domain of the account that covers `domainName` (lower case, A-labels): the name itself or one above
 * it, so that signatures align with it (RFC 7489 §3.1.1, relaxed). A verified one is preferred, then the
 * closest. Null when there is none.
 */
export async function findSendingDomain(
  handle: Handle,
  accountId: string,
  domainName: string,
): Promise<SendingDomain | null> {
  const labels = domainName.split('.')
  const covering = labels.slice(0, -1).map((_, index) => labels.slice(index).join('.'))
  return (await findCovering(handle, accountId, covering)) ?? null
}

function alreadyThere(name: string): DomainError {
  return new DomainError('conflict', `The account has the domain "${name}" already.`)
}

function tooMany(): DomainError {
  const most = maxDomains.toLocaleString('en')
  return new DomainError('conflict', `The account has ${most} domains, which is the most it can: delete one first.`)
}

function toDomain(row: DomainRow, options: Pick<CheckOptions, 'sender' | 'isCaptured'>): Domain {
  return {
    id: row.id,
    name: row.name,
    returnPath: row.return_path.slice(0, -`.${row.name}`.length),
    status: row.status,
    records: recordsOf(row, options.sender).map((record) => ({
      ...record,
      ...(obstacleTo(record, options) ?? row.findings[record.purpose] ?? { status: 'pending', hint: null }),
    })),
    lastCheckedAt: row.last_checked_at?.toISOString() ?? null,
    nextCheckAt: row.next_check_at?.toISOString() ?? null,
    verifiedAt: row.verified_at?.toISOString() ?? null,
    createdAt: row.created_at.toISOString(),
    updatedAt: row.updated_at.toISOString(),
  }
}
