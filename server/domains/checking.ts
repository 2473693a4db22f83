import type { Logger } from 'pino'
import type { Clock } from '../clock.ts'
import { type Db, inTransaction, type Trx } from '../database/connection.ts'
import { isFindable } from '../host-name.ts'
import type { Outbox } from '../outbox/append.ts'
import { type DnsOptions, openDns } from './dns.ts'
import type { Finding } from './finding.ts'
import { type Findings, lookUp, withoutLookUp } from './look-up.ts'
import { afterCheck, type CheckedBy, type Progress, verdictOf } from './progress.ts'
import { claimDomains, type DomainRow, lockDomain, updateDomain } from './queries.ts'
import { namesHost, recordsOf, type Sender, type WantedRecord } from './records.ts'

export type CheckOptions = {
  sender: Sender
  dns: DnsOptions
  /** Whether nothing leaves the machine: then names below `.test` count as published. */
  isCaptured: boolean
}

/**
 * Looks the records of a domain up, but for those that cannot be published: nothing is found of them. Not in a
 * transaction: the name servers take their time.
 */
export async function check(domain: DomainRow, options: CheckOptions): Promise<Findings> {
  const wanted = recordsOf(domain, options.sender)
  if (options.isCaptured && isTestName(domain.name)) return withoutLookUp(wanted)
  const publishable = wanted.filter((record) => obstacleTo(record, options) === null)
  using questions = openDns(options.dns)
  return await lookUp(domain.name, publishable, questions)
}

/**
 * What to say of a record that cannot be published, since it leads to a host that the DNS cannot have. Null: it
 * can be, or nothing leaves the machine, and nobody has to find it.
 */
export function obstacleTo(
  record: WantedRecord,
  { sender, isCaptured }: Pick<CheckOptions, 'sender' | 'isCaptured'>,
): Finding | null {
  if (isCaptured || isFindable(sender.hostname) || !namesHost(record, sender)) return null
  const hint = `This record cannot be published yet: "${sender.hostname}", as the service calls itself, has no dot, and the DNS cannot have it. Whoever runs the service has to set MAIL_HOSTNAME to a host name such as mail.example.com; then the value shown here is another.`
  return { status: 'missing', hint }
}

/** Whether no DNS will ever have it. Source: RFC 6761 §6.2. */
export function isTestName(name: string): boolean {
  return name.endsWith('.test')
}

export type SettleMeans = { outbox: Outbox; sender: Sender }

/**
 * Writes down what was found, and has `domain.verified` emitted if the domain becomes verified by it: once,
 * however many checks end at the same time. Answers undefined when the domain is gone.
 */
export async function settleCheck(
  trx: Trx,
  { outbox, sender }: SettleMeans,
  { id, findings, by, at }: { id: string; findings: Findings; by: CheckedBy; at: Date },
): Promise<DomainRow | undefined> {
  const before = await lockDomain(trx, id)
  if (before === undefined) return undefined
  const verdict = verdictOf(recordsOf(before, sender), findings)
  const progress = afterCheck(progressOf(before), { verdict, by, at })
  const isNew = progress.status === 'verified' && before.status !== 'verified'
  if (isNew) {
    const data = { domainId: id, domain: before.name }
    await outbox.append(trx, before.account_id, [{ type: 'domain.verified', data }])
  }
  const changedAt = progress.status === before.status ? before.updated_at : at
  return updateDomain(trx, id, { findings, progress, checkedAt: at, at: changedAt })
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

/** Checks the domains whose time has come. Answers how many. */
export async function runDueChecks(means: DueChecksMeans): Promise<number> {
  const { db, clock, logger, signal } = means
  let checked = 0
  while (checked < runSize && !signal.aborted) {
    const at = clock.now()
    const domains = await claimDomains(db, { at, leasedUntil: new Date(at.getTime() + leaseMs), limit: batchSize })
    const dns = { ...means.dns, signal }
    const looks = domains.map(async (domain) => ({ domain, findings: await check(domain, { ...means, dns }) }))
    for (const { domain, findings } of await Promise.all(looks)) {
      if (signal.aborted) break
      await settleDue(domain, findings, means).catch((error: unknown) => {
        logger.error({ err: error, domainId: domain.id }, 'the check of a domain was not written down; made again soon')
      })
    }
    checked += domains.length
    if (domains.length < batchSize) break
  }
  return checked
}

async function settleDue(domain: DomainRow, findings: Findings, means: DueChecksMeans): Promise<void> {
  const at = means.clock.now()
  const settled = await inTransaction(means.db, (trx) => {
    return settleCheck(trx, means, { id: domain.id, findings, by: 'schedule', at })
  })
  if (settled !== undefined && settled.status !== domain.status) {
    means.logger.info({ domainId: domain.id, status: settled.status }, 'the status of a domain changed')
  }
}
