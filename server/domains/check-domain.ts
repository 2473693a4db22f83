import type { Logger } from 'pino'
import type { DeliverabilityCheck } from '../../contract/deliverability.ts'
import type { Mode } from '../../contract/mode.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { isPublicHostName } from '../network/host-name.ts'
import type { Outbox } from '../outbox/append.ts'
import type { RecordCheck } from './check-result.ts'
import { inspect, withoutInspection } from './deliverability.ts'
import { type DnsOptions, openDns } from './dns.ts'
import { lookUp, type RecordChecks, withoutLookUp } from './look-up.ts'
import {
  claimDomains,
  claimNextKeys,
  type DomainRow,
  type DomainWithKeys,
  lockDomain,
  takeUpNextKeys,
  updateDomain,
  updateNextKeys,
  withKeys,
} from './queries.ts'
import { namesHost, nextRecordsOf, recordsOf, type SendingHost, type WantedRecord } from './records.ts'
import { afterCheck, type CheckedBy, checkResultOf, nextKeyCheckAt, type Progress } from './verification-state.ts'

export type CheckOptions = {
  sender: SendingHost
  dns: DnsOptions
  /** True when email is captured instead of sent. Records of names below `.test` then count as published. */
  isCaptured: boolean
}

/** The result of looking up the records of a domain, with the state of the domain at that time. */
export type Checked = {
  domain: DomainWithKeys
  findings: RecordChecks
  /** Results for the records of the next keys. */
  nextFindings: RecordChecks
}

/**
 * Looks up the records of a domain, except those that cannot be published, which get no result. Do not call it in a
 * transaction, because DNS queries may take seconds.
 */
export async function check(domain: DomainWithKeys, options: CheckOptions): Promise<Checked> {
  const wanted = recordsOf(domain, options.sender)
  const publishable = wanted.filter((record) => obstacleTo(record, options) === null)
  return { domain, ...(await find(domain, publishable, options)) }
}

async function find(
  domain: DomainWithKeys,
  wanted: readonly WantedRecord[],
  options: CheckOptions,
): Promise<Omit<Checked, 'domain'>> {
  const next = domain.next === null ? [] : nextRecordsOf(domain.name, domain.next)
  if (options.isCaptured && isTestName(domain.name))
    return { findings: withoutLookUp(wanted), nextFindings: withoutLookUp(next) }
  using questions = openDns(options.dns)
  const [findings, nextFindings] = await Promise.all([
    lookUp(domain.name, wanted, questions),
    lookUp(domain.name, next, questions),
  ])
  return { findings, nextFindings }
}

/**
 * Returns the result for a record that cannot be published, because it names a host that the public DNS cannot have.
 * Returns null when the record can be published, or does not have to be because email is captured.
 */
export function obstacleTo(
  record: WantedRecord,
  { sender, isCaptured }: Pick<CheckOptions, 'sender' | 'isCaptured'>,
): RecordCheck | null {
  if (isCaptured || isPublicHostName(sender.hostname) || !namesHost(record, sender)) return null
  const hint = `This record cannot be published yet: "${sender.hostname}", as the service calls itself, has no dot, and the DNS cannot have it. The operator of the service has to set MAIL_HOSTNAME to a host name such as mail.example.com; then the value shown here is another.`
  return { status: 'missing', hint }
}

/** Looks up what receivers look at. Do not call it in a transaction, because DNS queries may take seconds. */
export async function inspectDomain(domain: DomainWithKeys, options: CheckOptions): Promise<DeliverabilityCheck[]> {
  const { sender, isCaptured } = options
  if (isCaptured && isTestName(domain.name)) return withoutInspection()
  const { findings } = await check(domain, options)
  const obstacles = recordsOf(domain, sender).flatMap((record) => {
    const obstacle = obstacleTo(record, options)
    return obstacle === null ? [] : [[record.purpose, obstacle] as const]
  })
  using dns = openDns(options.dns)
  return await inspect(
    {
      name: domain.name,
      findings: { ...findings, ...Object.fromEntries(obstacles) },
      sender,
      skipsHost: reasonToSkipHost({ sender, isCaptured }),
    },
    dns,
  )
}

function reasonToSkipHost({ sender, isCaptured }: Pick<CheckOptions, 'sender' | 'isCaptured'>): string | null {
  if (isCaptured) return 'Email is captured: no host sends it.'
  if (sender.spfInclude === null) return null
  return `Email leaves by the hosts of "${sender.spfInclude}", whose reverse DNS its operator sets.`
}

/** Returns true for names below `.test`, which the public DNS never has. Source: RFC 6761 §6.2. */
export function isTestName(name: string): boolean {
  return name.endsWith('.test')
}

/** The result of a check, and what started it. */
export type CheckToRecord = {
  checked: Checked
  by: CheckedBy
  /** Mode of the request that started the check; `live` for a scheduled one. */
  mode: Mode
  at: Date
}

export type RecordCheckMeans = { outbox: Outbox; sender: SendingHost }

/**
 * Stores the result of a check. Activates the next keys when their records were found. Emits `domain.verified` when the
 * domain becomes verified, once even if several checks end at the same time. Ignores the result when the keys of the
 * domain have changed since. Returns undefined when the domain was deleted.
 */
export async function recordCheck(
  trx: Trx,
  { outbox, sender }: RecordCheckMeans,
  { checked, by, mode, at }: CheckToRecord,
): Promise<DomainWithKeys | undefined> {
  const locked = await lockWithKeys(trx, checked)
  if (locked === undefined || !hasSameKeys(locked, checked.domain)) return locked
  const before = await settleNextKeys(trx, locked, { checked, at })
  const areActivated = locked.next !== null && before.next === null
  const findings = areActivated ? { ...checked.findings, ...checked.nextFindings } : checked.findings
  const verdict = checkResultOf(recordsOf(before, sender), findings)
  const progress = afterCheck(progressOf(before), { verdict, by, at })
  const isNew = progress.status === 'verified' && before.status !== 'verified'
  if (isNew) {
    const data = { domainId: before.id, domain: before.name }
    await outbox.append(trx, { accountId: before.account_id, mode }, [{ type: 'domain.verified', data }])
  }
  const changedAt = progress.status === before.status ? before.updated_at : at
  const settled = await updateDomain(trx, before.id, { findings, progress, checkedAt: at, at: changedAt })
  return { ...before, ...settled }
}

async function lockWithKeys(trx: Trx, { domain }: Checked): Promise<DomainWithKeys | undefined> {
  const row = await lockDomain(trx, domain.id)
  return row === undefined ? undefined : (await withKeys(trx, [row]))[0]
}

function hasSameKeys(one: DomainWithKeys, other: DomainWithKeys): boolean {
  return (
    one.rsa_selector === other.rsa_selector &&
    one.ed25519_selector === other.ed25519_selector &&
    one.next?.id === other.next?.id
  )
}

/** Activates the next keys when their records were found, otherwise stores the result. Returns the updated domain. */
async function settleNextKeys(
  trx: Trx,
  domain: DomainWithKeys,
  { checked: { findings, nextFindings }, at }: { checked: Checked; at: Date },
): Promise<DomainWithKeys> {
  const { next } = domain
  if (next === null) return domain
  if (arePublished({ ...domain.findings, ...findings }, nextFindings)) {
    // Only verified domains send live email: before, no email was signed with the present keys.
    const keepUsed = domain.verified_at !== null
    const row = await takeUpNextKeys(trx, domain, { findings: nextFindings, keepUsed, at })
    return (await withKeys(trx, [row]))[0] as DomainWithKeys
  }
  await updateNextKeys(trx, domain, { findings: nextFindings, nextCheckAt: nextKeyCheckAt(next.created_at, at) })
  return { ...domain, next: { ...next, findings: nextFindings } }
}

/**
 * Returns true when the next keys are published: RSA, and also Ed25519 if the present Ed25519 key is published. Few
 * receivers verify Ed25519, but a rotation must not make them find it missing.
 */
function arePublished(present: RecordChecks, next: RecordChecks): boolean {
  const lacksEd25519 = !['verified', 'timeout', 'server_failure'].includes(present.dkim_ed25519?.status ?? 'pending')
  return next.dkim_rsa?.status === 'verified' && (next.dkim_ed25519?.status === 'verified' || lacksEd25519)
}

function progressOf({ status, pending_since, check_count, next_check_at, verified_at }: DomainRow): Progress {
  return { status, pending_since, check_count, next_check_at, verified_at }
}

/** Domains looked up at the same time. */
const batchSize = 50
/** Most domains checked by one run; the next run checks the rest. Limits a run to a few minutes. */
const runSize = 1_000
/** Lease of a batch. Milliseconds; longer than a batch ever takes. */
const leaseMs = 5 * 60_000

export type DueChecksMeans = CheckOptions & {
  db: Db
  clock: Clock
  outbox: Outbox
  logger: Logger
  /** Ends the run early. Lookups under way are repeated later. */
  signal: AbortSignal
}

/**
 * Checks the domains that are due, and the next keys of domains whose keys are being rotated. Returns the number of
 * checks.
 */
export async function runDueChecks(means: DueChecksMeans): Promise<number> {
  return (await runDue(means, checkingDomains)) + (await runDue(means, checkingKeys))
}

/** A kind of scheduled check: how to claim domains, look up their records and store the results. */
type Checking = {
  claim: typeof claimDomains
  check: (domain: DomainWithKeys, options: CheckOptions) => Promise<Checked>
  settle: typeof recordCheck
}

const checkingDomains: Checking = { claim: claimDomains, check, settle: recordCheck }

/** Checks only the next keys, so that the schedule of the domain stays unchanged. */
const checkingKeys: Checking = {
  claim: claimNextKeys,
  check: async (domain, options) => ({ domain, ...(await find(domain, [], options)) }),
  async settle(trx, _, { checked, at }) {
    const locked = await lockWithKeys(trx, checked)
    if (locked === undefined || !hasSameKeys(locked, checked.domain)) return locked
    return settleNextKeys(trx, locked, { checked, at })
  },
}

async function runDue(means: DueChecksMeans, checking: Checking): Promise<number> {
  const { db, clock, logger, signal } = means
  let count = 0
  while (count < runSize && !signal.aborted) {
    const at = clock.now()
    const rows = await checking.claim(db, { at, leasedUntil: new Date(at.getTime() + leaseMs), limit: batchSize })
    const domains = await withKeys(db, rows)
    const dns = { ...means.dns, signal }
    const checks = domains.map((domain) => checking.check(domain, { ...means, dns }))
    for (const checked of await Promise.all(checks)) {
      if (signal.aborted) break
      await settleDue(checked, means, checking).catch((error: unknown) => {
        const domainId = checked.domain.id
        logger.error({ err: error, domainId }, 'the check of a domain could not be stored; it is repeated soon')
      })
    }
    count += domains.length
    if (domains.length < batchSize) break
  }
  return count
}

async function settleDue(checked: Checked, means: DueChecksMeans, { settle }: Checking): Promise<void> {
  const { db, clock, logger } = means
  const { domain } = checked
  const at = clock.now()
  const settled = await inTransaction(db, (trx) => settle(trx, means, { checked, by: 'schedule', mode: 'live', at }))
  if (settled === undefined) return
  if (settled.status !== domain.status) {
    logger.info({ domainId: domain.id, status: settled.status }, 'the status of a domain changed')
  }
  if (settled.rsa_selector !== domain.rsa_selector) {
    logger.info({ domainId: domain.id, selector: settled.rsa_selector }, 'the new keys of a domain sign from now on')
  }
}
