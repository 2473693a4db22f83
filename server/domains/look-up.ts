import { judgeDkim } from './check-dkim.ts'
import { judgeDmarc, judgeMx } from './check-mx-and-dmarc.ts'
import { found, missing, quoted, type RecordCheck } from './check-result.ts'
import { judgeSpf } from './check-spf.ts'
import type { Dns, DnsResponse, MxRecord } from './dns.ts'
import type { Purpose, WantedRecord } from './records.ts'

/** The results of a check, by the purpose of the record. */
export type RecordChecks = Partial<Record<Purpose, RecordCheck>>

/** Looks up the records of a domain concurrently. */
export async function lookUp(domain: string, wanted: readonly WantedRecord[], dns: Dns): Promise<RecordChecks> {
  const findings = await Promise.all(
    wanted.map(async (record) => [record.purpose, await findingOf(record, domain, dns)] as const),
  )
  return Object.fromEntries(findings)
}

/** Returns results for names below `.test` while email is captured: all records count as published. */
export function withoutLookUp(wanted: readonly WantedRecord[]): RecordChecks {
  const hint = 'Not looked up: a name below .test is in no DNS, and counts as published while mail is captured.'
  return Object.fromEntries(wanted.map(({ purpose }) => [purpose, { ...found, hint }]))
}

async function findingOf(record: WantedRecord, domain: string, dns: Dns): Promise<RecordCheck> {
  const finding = await judgedAt(record.name, record, dns)
  if (finding.status === 'verified') return { ...finding, hint: finding.hint ?? (await hintOfAlias(record, dns)) }
  if (finding.status !== 'missing') return finding
  return (
    (await danglingAt(record, dns)) ??
    (await coveredAbove(record, domain, dns)) ??
    (await doubled(record, domain, dns)) ?? { ...missing, hint: hintOfMissing(record) }
  )
}

async function judgedAt(name: string, record: WantedRecord, dns: Dns): Promise<RecordCheck> {
  if (record.type === 'MX') return judged(await dns.mx(name), (values) => judgeMx(record.value, values))
  return judged(await dns.txt(name), (values) => judgeText(record, values))
}

function judgeText({ purpose, value }: WantedRecord, texts: readonly string[]): RecordCheck {
  if (purpose === 'spf') return judgeSpf(value, texts)
  return purpose === 'dmarc' ? judgeDmarc(texts) : judgeDkim(value, texts)
}

function judged<T extends string | MxRecord>(
  response: DnsResponse<T>,
  judge: (values: readonly T[]) => RecordCheck,
): RecordCheck {
  switch (response.kind) {
    case 'found':
      return judge(response.values)
    case 'none':
      return missing
    case 'timeout':
      return {
        status: 'timeout',
        hint: 'The name servers did not answer in time. It is looked up again; if this stays, check the name servers of the domain.',
      }
    case 'failure':
      return {
        status: 'server_failure',
        hint: `The name servers answered with an error (${response.code}). It is looked up again; if this stays, check the name servers of the domain and its DNSSEC.`,
      }
  }
}

function hintOfMissing({ type, name, purpose }: WantedRecord): string {
  const what = {
    dkim_rsa: 'DKIM record',
    dkim_ed25519: 'DKIM record',
    spf: 'SPF record',
    return_path: 'record',
    dmarc: 'DMARC record',
  }
  return `There is no ${what[purpose]} (${type}) at "${name}". Publish it as shown; until it is seen everywhere may take hours.`
}

/** Returns a hint when the record was found through a CNAME, whose target must keep it. */
async function hintOfAlias({ name, purpose }: WantedRecord, dns: Dns): Promise<string | null> {
  if (!purpose.startsWith('dkim')) return null
  const target = await aliasOf(name, dns)
  return target === null ? null : `Found by way of a CNAME, at ${quoted(target)}. It must stay there.`
}

async function danglingAt({ name, type }: WantedRecord, dns: Dns): Promise<RecordCheck | null> {
  const target = await aliasOf(name, dns)
  if (target === null) return null
  return {
    status: 'dangling',
    hint: `"${name}" is a CNAME for ${quoted(target)}, where the ${type} record is not found. Publish it there, or in the place of the CNAME.`,
  }
}

async function aliasOf(name: string, dns: Dns): Promise<string | null> {
  const response = await dns.cname(name)
  return response.kind === 'found' ? (response.values[0] ?? null) : null
}

/** Finds a DMARC record of a parent domain, which also applies to its subdomains. Source: RFC 7489 §6.6.3. */
async function coveredAbove(record: WantedRecord, domain: string, dns: Dns): Promise<RecordCheck | null> {
  if (record.purpose !== 'dmarc') return null
  const labels = domain.split('.')
  for (let start = Math.max(1, labels.length - maxLevelsAbove); start < labels.length - 1; start++) {
    const name = `_dmarc.${labels.slice(start).join('.')}`
    if ((await judgedAt(name, record, dns)).status === 'verified') return { ...found, hint: `Covered by "${name}".` }
  }
  return null
}

/** Most labels of the parent domains to check for DMARC. The organizational domain nearly always has no more. */
const maxLevelsAbove = 5

/** Finds a record at the doubled name, such as `send.example.com.example.com`: some providers append the domain. */
async function doubled(record: WantedRecord, domain: string, dns: Dns): Promise<RecordCheck | null> {
  const name = `${record.name}.${domain}`
  const { status } = await judgedAt(name, record, dns)
  if (['missing', 'timeout', 'server_failure'].includes(status)) return null
  const short = record.name.slice(0, -domain.length - 1)
  return {
    ...missing,
    hint: `It stands at "${name}": the DNS provider appends the domain by itself. Enter "${short}" as its name.`,
  }
}
