import type { DomainRecord } from '../../contract/domains.ts'

/** A record to publish. */
export type WantedRecord = Omit<DomainRecord, 'status' | 'hint'>
export type Purpose = DomainRecord['purpose']

/** The host of this service in the records of all domains. */
export type SendingHost = {
  /** The host that receives bounces. */
  hostname: string
  /** Host whose SPF record is included. Null: the record allows `hostname`. */
  spfInclude: string | null
}

/** The public keys of a domain, as in their records. */
export type PublishedKeys = {
  rsa_selector: string
  rsa_public_key: string
  ed25519_selector: string
  ed25519_public_key: string
}

export type SignedDomain = PublishedKeys & { name: string; return_path: string }

/** Returns true when the value of a record names the host of the service, which the DNS must then have. */
export function namesHost({ purpose }: Pick<WantedRecord, 'purpose'>, { spfInclude }: SendingHost): boolean {
  return purpose === 'return_path' || (purpose === 'spf' && spfInclude === null)
}

const ttl = 3_600
const mxPriority = 10

/**
 * Returns the host of the return path, which is a subdomain. The MX of the domain itself is for its own mailboxes.
 */
export function returnPathOf(name: string, below: string): string {
  return `${below.toLowerCase()}.${name}`
}

/**
 * Returns selectors for new keys, with the random part of a new id. So two accounts can have the same domain, and a
 * domain that is deleted and added again does not find its old keys in the DNS.
 */
export function selectorsOf(id: string): { rsa: string; ed25519: string } {
  const random = id.slice(-10)
  return { rsa: `rsa-${random}`, ed25519: `ed25519-${random}` }
}

/**
 * Returns the records of a domain, with full names. Ed25519 is not required, since few receivers verify it yet. DMARC
 * is not required, since it concerns more than this service.
 *
 * Source: RFC 6376 §3.6.1 and RFC 8463 (DKIM), RFC 7208 §3 (SPF), RFC 7489 §6.3 (DMARC).
 */
export function recordsOf(domain: SignedDomain, sender: SendingHost): WantedRecord[] {
  const allowed = sender.spfInclude === null ? `a:${sender.hostname}` : `include:${sender.spfInclude}`
  const [rsa, ed25519] = keyRecordsOf(domain.name, domain)
  return [
    { ...rsa, key: 'signing', required: true },
    { ...ed25519, key: 'signing' },
    { ...text, purpose: 'spf', name: domain.return_path, value: `v=spf1 ${allowed} ~all`, required: true },
    {
      ...text,
      purpose: 'return_path',
      type: 'MX',
      name: domain.return_path,
      value: sender.hostname,
      priority: mxPriority,
      required: true,
    },
    { ...text, purpose: 'dmarc', name: `_dmarc.${domain.name}`, value: 'v=DMARC1; p=none', required: false },
  ]
}

/** Returns the records of the next keys. A domain does not need them to be verified. */
export function nextRecordsOf(name: string, keys: PublishedKeys): WantedRecord[] {
  return keyRecordsOf(name, keys).map((record) => ({ ...record, key: 'next' }))
}

/** The common fields of nearly all records. */
const text = { type: 'TXT', priority: null, ttl, key: null } as const

/** Returns the DKIM records of keys. Source: RFC 6376 §3.6.1, RFC 8463. */
export function keyRecordsOf(name: string, keys: PublishedKeys): [rsa: WantedRecord, ed25519: WantedRecord] {
  return [
    {
      ...text,
      purpose: 'dkim_rsa',
      name: keyRecordName(keys.rsa_selector, name),
      value: `v=DKIM1; k=rsa; p=${keys.rsa_public_key}`,
      required: false,
    },
    {
      ...text,
      purpose: 'dkim_ed25519',
      name: keyRecordName(keys.ed25519_selector, name),
      value: `v=DKIM1; k=ed25519; p=${keys.ed25519_public_key}`,
      required: false,
    },
  ]
}

export function keyRecordName(selector: string, domain: string): string {
  return `${selector}._domainkey.${domain}`
}
