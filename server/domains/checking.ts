import type { Logger } from 'pino'
import type { Mode } from '../../contract/mode.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { isPublicHostName } from '../network/host-name.ts'
import type { Outbox } from '../outbox/append.ts'
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
import type { RecordCheck } from './record-check.ts'
import { namesHost, nextRecordsOf, recordsOf, type SendingHost, type WantedRecord } from './records.ts'
import { afterCheck, type CheckedBy, checkResultOf, nextKeyCheckAt, type Progress } from './verification-state.ts'

export type CheckOptions = {
  sender: SendingHost
  dns: DnsOptions
  /** Whether nothing leaves the machine: then names below `.test` count as published. */
  isCaptured: boolean
}

/** What was found of a domain, as it was when it was looked up. */
export type Checked = {
  domain: DomainWithKeys
  findings: RecordChecks
  /** Of the records of its next keys. */
  nextFindings: RecordChecks
}

/**
 * Looks the records of a domain up, but for those that cannot be published: nothing is found of them. Not in a
 * transaction: the name servers take their time.
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
 * What to say of a record that cannot be published, since it leads to a host that the DNS cannot have. Null: it
 * can be, or nothing leaves the machine, and nobody has to find it.
 */
export function obstacleTo(
  record: WantedRecord,
  { sender, isCaptured }: Pick<CheckOptions, 'sender' | 'isCaptured'>,
): RecordCheck | null {
  if (isCaptured || isPublicHostName(sender.hostname) || !namesHost(record, sender)) return null
  const hint = `This record cannot be published yet: "${sender.hostname}", as the service calls itself, has no dot, and the DNS cannot have it. Whoever runs the service has to set MAIL_HOSTNAME to a host name such as mail.example.com; then the value shown here is another.`
  return { status: 'missing', hint }
}

/** Whether no DNS will ever have it. Source: RFC 6761 §6.2. */
export function isTestName(name: string): boolean {
  return name.endsWith('.test')
}

/** What a check found, and who had it made. */
export type CheckToRecord = {
  checked: Checked
  by: CheckedBy
  /** Of what caused the check; a scheduled one is live. */
  mode: Mode
  at: Date
}

export type RecordCheckMeans = { outbox: Outbox; sender: SendingHost }

/**
 * Writes down what was found, has the next keys sign if their records were seen, and has `domain.verified` emitted
 * if the domain becomes verified by it: once, however many checks end at the same time. What was found of other
 * keys than the domain has by now changes nothing. Returns undefined when the domain is gone.
 */
export async function recordCheck(
  trx: Trx,
  { outbox, sender }: RecordCheckMeans,
  { checked, by, mode, at }: CheckToRecord,
): Promise<DomainWithKeys | undefined> {
  const locked = await lockWithKeys(trx, checked)
  if (locked === undefined || !hasSameKeys(locked, checked.domain)) return locked
  const before = await settleNextKeys(trx, locked, { checked, at })
  const areTakenUp = locked.next !== null && before.next === null
  const findings = areTakenUp ? { ...checked.findings, ...checked.nextFindings } : checked.findings
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

/** Returns the locked domain with the keys it has then. */
async function settleNextKeys(
  trx: Trx,
  domain: DomainWithKeys,
  { checked: { findings, nextFindings }, at }: { checked: Checked; at: Date },
): Promise<DomainWithKeys> {
  const { next } = domain
  if (next === null) return domain
  if (areToSign({ ...domain.findings, ...findings }, nextFindings)) {
    // Live email is sent from verified domains alone: before, no mail was signed with these keys.
    const keepUsed = domain.verified_at !== null
    const row = await takeUpNextKeys(trx, domain, { findings: nextFindings, keepUsed, at })
    return (await withKeys(trx, [row]))[0] as DomainWithKeys
  }
  await updateNextKeys(trx, domain, { findings: nextFindings, nextCheckAt: nextKeyCheckAt(next.created_at, at) })
  return { ...domain, next: { ...next, findings: nextFindings } }
}

/**
 * Whether the next keys are published: RSA, and Ed25519 too unless the domain does without it so far. Few receivers
 * verify Ed25519, but those that do shall not find it missing for the sake of new keys.
 */
function areToSign(present: RecordChecks, next: RecordChecks): boolean {
  const doesWithout = !['verified', 'timeout', 'server_failure'].includes(present.dkim_ed25519?.status ?? 'pending')
  return next.dkim_rsa?.status === 'verified' && (next.dkim_ed25519?.status === 'verified' || doesWithout)
}

function progressOf({ status, pending_since, check_count, next_check_at, verified_at }: DomainRow): Progress {
  return { status, pending_since, check_count, next_check_at, verified_at }
}

/** Domains looked up at the same time. */
const batchSize = 50
/** Domains checked by one run; the rest is for the next. Bounds how long it takes: some minutes. */
const runSize = 1_000
/** Longer than a batch ever takes. Milliseconds. */
const leaseMs = 5 * 60_000

export type DueChecksMeans = CheckOptions & {
  db: Db
  clock: Clock
  outbox: Outbox
  logger: Logger
  /** Ends the run early: what is looked up at that moment is looked up again later. */
  signal: AbortSignal
}

/**
 * Checks the domains whose time has come, and the next keys of those whose keys are rotated. Returns how many checks
 * it made.
 */
export async function runDueChecks(means: DueChecksMeans): Promise<number> {
  return (await runDue(means, checkingDomains)) + (await runDue(means, checkingKeys))
}

/** What of domains is checked, and how. */
type Checking = {
  claim: typeof claimDomains
  check: (domain: DomainWithKeys, options: CheckOptions) => Promise<Checked>
  settle: typeof recordCheck
}

const checkingDomains: Checking = { claim: claimDomains, check, settle: recordCheck }

/** Looks up the next keys alone, so that the schedule of the domain stays as it is. */
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
    const looks = domains.map((domain) => checking.check(domain, { ...means, dns }))
    for (const checked of await Promise.all(looks)) {
      if (signal.aborted) break
      await settleDue(checked, means, checking).catch((error: unknown) => {
        const domainId = checked.domain.id
        logger.error({ err: error, domainId }, 'the check of a domain was not written down; made again soon')
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
