import { type DeliverabilityCheck, deliverabilityChecks } from '../../contract/deliverability.ts'
import { readIpAddress } from '../lib/ip-address.ts'
import { printable } from '../lib/printable.ts'
import { isPublicHostName } from '../network/host-name.ts'
import type { RecordCheck } from './check-result.ts'
import type { Dns, DnsResponse } from './dns.ts'
import type { RecordChecks } from './look-up.ts'
import type { SendingHost } from './records.ts'

/** Most addresses of the sending host, and most names of an address, that are followed. */
const maxFollowed = 4
/** Most values that are shown for a check, and characters of each. */
const maxFound = 5
const maxFoundCharacters = 200

export type Inspected = {
  /** The sending domain. */
  name: string
  /** The results of a check of its records that was made just now. */
  findings: RecordChecks
  sender: SendingHost
  /** Why the host that sends is not looked at. Null: it is. */
  skipsHost: string | null
}

/** Judges what receivers look at, beside what the domain needs. At most some twenty DNS queries. */
export async function inspect(
  { name, findings, sender, skipsHost }: Inspected,
  dns: Dns,
): Promise<DeliverabilityCheck[]> {
  const [dmarc, reverse, mtaSts, tlsRpt] = await Promise.all([
    dmarcOf(name, dns),
    reverseOf(sender.hostname, skipsHost, dns),
    optionalRecord(dns, {
      check: 'mta_sts',
      name: `_mta-sts.${name}`,
      begins: /^v=STSv1;/,
      present: 'The domain announces an MTA-STS policy. Whether its policy file can be fetched is not checked.',
      absent: 'The domain announces no MTA-STS policy. Nothing that you send needs it: it protects mail to the domain.',
    }),
    optionalRecord(dns, {
      check: 'tls_rpt',
      name: `_smtp._tls.${name}`,
      begins: /^v=TLSRPTv1;/,
      present: 'Other mail servers report when they cannot send to the domain encrypted.',
      absent: 'The domain asks for no reports about encryption. Nothing that you send needs them.',
    }),
  ])
  return [
    recordCheckOf('spf', findings.spf, 'The SPF record of the return path allows this service.'),
    recordCheckOf('dkim', findings.dkim_rsa, 'The key that emails are signed with is published.'),
    recordCheckOf('return_path', findings.return_path, 'Bounces come back to this service.'),
    dmarc,
    reverse,
    mtaSts,
    tlsRpt,
  ]
}

/** Returns the checks of a domain that cannot be in the DNS: all are skipped. */
export function withoutInspection(): DeliverabilityCheck[] {
  const summary = 'Not looked up: email is captured, and the DNS has no name that ends in ".test".'
  return deliverabilityChecks.map((check) => ({ check, status: 'skipped', summary, advice: null, found: [] }))
}

function recordCheckOf(
  check: DeliverabilityCheck['check'],
  finding: RecordCheck | undefined,
  present: string,
): DeliverabilityCheck {
  if (finding?.status === 'verified') return { check, status: 'pass', summary: present, advice: null, found: [] }
  if (finding === undefined || ['pending', 'timeout', 'server_failure'].includes(finding.status)) {
    return finding?.hint ? { ...noAnswer(check), summary: finding.hint, advice: null } : noAnswer(check)
  }
  const summary = finding.hint ?? 'The record is not there.'
  return { check, status: 'fail', summary, advice: 'Publish the record as the page of the domain shows it.', found: [] }
}

/** Source: RFC 7489 §6.3 (tags), §6.6.3 (the record of a parent domain applies to its subdomains). */
async function dmarcOf(domain: string, dns: Dns): Promise<DeliverabilityCheck> {
  const check = 'dmarc'
  const labels = domain.split('.')
  const owners = labels.slice(0, -1).map((_, index) => labels.slice(index).join('.'))
  for (const owner of [...owners.slice(0, 1), ...owners.slice(1).slice(-maxFollowed)]) {
    const response = await dns.txt(`_dmarc.${owner}`)
    if (isUnanswered(response)) return noAnswer(check, response)
    const records = valuesOf(response).filter((text) => /^v\s*=\s*DMARC1\s*(;|$)/.test(text))
    const [record] = records
    if (record === undefined) continue
    const found = shown(records)
    const where = `"_dmarc.${owner}"`
    if (records.length > 1) {
      const summary = `There are ${records.length} DMARC records at ${where}, so receivers apply none.`
      return { check, status: 'fail', summary, advice: 'Keep one of them.', found }
    }
    const tags = tagsOf(record)
    const policy = ((owner === domain ? undefined : tags.get('sp')) ?? tags.get('p'))?.toLowerCase()
    if (policy === 'quarantine' || policy === 'reject') {
      return { check, status: 'pass', summary: `Receivers ${policy} mail that fails DMARC.`, advice: null, found }
    }
    return {
      check,
      status: 'warn',
      summary:
        policy === 'none'
          ? 'Receivers report mail that fails DMARC, and accept it all the same: the policy is "none".'
          : 'The DMARC record has no valid policy, so receivers treat it as "none".',
      advice: `Once your own mail passes, publish "v=DMARC1; p=quarantine" at ${where}.`,
      found,
    }
  }
  return {
    check,
    status: 'fail',
    summary: 'There is no DMARC record. Gmail and Yahoo require one of everyone who sends many emails.',
    advice: `Publish "v=DMARC1; p=none" at "_dmarc.${domain}".`,
    found: [],
  }
}

function tagsOf(record: string): Map<string, string> {
  return new Map(
    record.split(';').map((tag) => {
      const [name = '', value = ''] = tag.split('=', 2)
      return [name.trim().toLowerCase(), value.trim()]
    }),
  )
}

/** Each address of the host must have a name that leads back to the address. Source: RFC 8601 §2.7.3 ("iprev"). */
async function reverseOf(hostname: string, skips: string | null, dns: Dns): Promise<DeliverabilityCheck> {
  const check = 'reverse_dns'
  const reason = skips ?? (isPublicHostName(hostname) ? null : 'The host that sends has no public name.')
  if (reason !== null) return { check, status: 'skipped', summary: reason, advice: null, found: [] }
  const responses = await Promise.all([dns.addresses(hostname, 4), dns.addresses(hostname, 6)])
  const addresses = responses.flatMap(valuesOf).slice(0, maxFollowed)
  if (addresses.length === 0) {
    const unanswered = responses.find(isUnanswered)
    if (unanswered) return noAnswer(check, unanswered)
    const summary = `"${hostname}" has no address. Many receivers refuse mail of such a host.`
    return { check, status: 'fail', summary, advice: `Publish an A record for "${hostname}".`, found: [] }
  }
  const results = await Promise.all(addresses.map((address) => namesBack(address, dns)))
  const found = shown(results.map(({ address, names }) => `${address}: ${names.join(', ') || 'no name'}`))
  const wrong = results.filter(({ state }) => state === 'wrong')
  if (wrong.length > 0) {
    const list = wrong.map(({ address }) => address).join(', ')
    const summary = `No name of ${list} leads back to it. Gmail and others refuse mail from such addresses.`
    const advice = `Have your hosting provider set the reverse DNS (PTR) of ${list} to "${hostname}". This is for the person who runs the service.`
    return { check, status: 'fail', summary, advice, found }
  }
  if (results.some(({ state }) => state === 'unknown')) return { ...noAnswer(check), found }
  const summary = `Every address of "${hostname}" has a name that leads back to it.`
  return { check, status: 'pass', summary, advice: null, found }
}

type Reversed = { address: string; names: readonly string[]; state: 'right' | 'wrong' | 'unknown' }

async function namesBack(address: string, dns: Dns): Promise<Reversed> {
  const parsed = readIpAddress(address)
  const response: DnsResponse<string> = parsed === null ? { kind: 'none' } : await dns.names(parsed)
  if (isUnanswered(response)) return { address, names: [], state: 'unknown' }
  const names = valuesOf(response).slice(0, maxFollowed)
  const forward = await Promise.all(names.map((name) => dns.addresses(name, address.includes(':') ? 6 : 4)))
  if (forward.some((addresses) => valuesOf(addresses).includes(address))) return { address, names, state: 'right' }
  return { address, names, state: forward.some(isUnanswered) ? 'unknown' : 'wrong' }
}

type Optional = { check: 'mta_sts' | 'tls_rpt'; name: string; begins: RegExp; present: string; absent: string }

async function optionalRecord(
  dns: Dns,
  { check, name, begins, present, absent }: Optional,
): Promise<DeliverabilityCheck> {
  const response = await dns.txt(name)
  if (isUnanswered(response)) return noAnswer(check, response)
  const found = valuesOf(response).filter((text) => begins.test(text))
  if (found.length === 0) return { check, status: 'optional', summary: absent, advice: null, found: [] }
  if (found.length === 1) return { check, status: 'pass', summary: present, advice: null, found: shown(found) }
  const summary = `There are ${found.length} such records at "${name}", so none counts.`
  return { check, status: 'warn', summary, advice: 'Keep one of them.', found: shown(found) }
}

function noAnswer(check: DeliverabilityCheck['check'], response?: DnsResponse<unknown>): DeliverabilityCheck {
  const summary =
    response?.kind === 'failure'
      ? `The name servers answered with an error (${response.code}).`
      : 'The name servers did not answer in time.'
  const advice = 'Check again. If this stays, check the name servers of the domain.'
  return { check, status: 'unknown', summary, advice, found: [] }
}

function isUnanswered({ kind }: DnsResponse<unknown>): boolean {
  return kind === 'timeout' || kind === 'failure'
}

function valuesOf<T>(response: DnsResponse<T>): readonly T[] {
  return response.kind === 'found' ? response.values : []
}

function shown(values: readonly string[]): string[] {
  return values.slice(0, maxFound).map((value) => printable(value.slice(0, maxFoundCharacters)))
}
