import type { DomainRecord } from '../../contract/domains.ts'

/** A record to publish. */
export type WantedRecord = Omit<DomainRecord, 'status' | 'hint'>
export type Purpose = DomainRecord['purpose']

/** What the records of every domain lead to. */
export type Sender = {
  /** The host that takes what comes back. */
  hostname: string
  /** Whose SPF record is included; null: that host sends. */
  spfInclude: string | null
}

export type SignedDomain = {
  name: string
  return_path: string
  rsa_selector: string
  rsa_public_key: string
  ed25519_selector: string
  ed25519_public_key: string
}

/** Whether a record leads to the host of the service, which must be found there. */
export function namesHost({ purpose }: Pick<WantedRecord, 'purpose'>, { spfInclude }: Sender): boolean {
  return purpose === 'return_path' || (purpose === 'spf' && spfInclude === null)
}

const ttl = 3_600
const mxPriority = 10

/**
 * The host of the return path of a domain, by what stands below the domain. Not the domain itself, whose MX is
 * that of its people's mailboxes.
 */
export function returnPathOf(name: string, below: string): string {
  return `${below.toLowerCase()}.${name}`
}

/**
 * The selectors of a domain, of the random part of its id: two accounts can have the same name, and a
 * domain that was deleted and added again does not find its old keys in the DNS.
 */
export function selectorsOf(id: string): { rsa: string; ed25519: string } {
  const random = id.slice(-10)
  return { rsa: `rsa-${random}`, ed25519: `ed25519-${random}` }
}

/**
 * The records of a domain, each a name in full. Ed25519 is not required, since few receivers verify it
 * yet, nor is DMARC, which is about more than this service.
 *
 * Source: RFC 6376 §3.6.1 and RFC 8463 (DKIM), RFC 7208 §3 (SPF), RFC 7489 §6.3 (DMARC).
 */
export function recordsOf(domain: SignedDomain, sender: Sender): WantedRecord[] {
  const text = { type: 'TXT', priority: null, ttl } as const
  const allowed = sender.spfInclude === null ? `a:${sender.hostname}` : `include:${sender.spfInclude}`
  return [
    {
      ...text,
      purpose: 'dkim_rsa',
      name: `${domain.rsa_selector}._domainkey.${domain.name}`,
      value: `v=DKIM1; k=rsa; p=${domain.rsa_public_key}`,
      required: true,
    },
    {
      ...text,
      purpose: 'dkim_ed25519',
      name: `${domain.ed25519_selector}._domainkey.${domain.name}`,
      value: `v=DKIM1; k=ed25519; p=${domain.ed25519_public_key}`,
      required: false,
    },
    { ...text, purpose: 'spf', name: domain.return_path, value: `v=spf1 ${allowed} ~all`, required: true },
    {
      purpose: 'return_path',
      type: 'MX',
      name: domain.return_path,
      value: sender.hostname,
      priority: mxPriority,
      ttl,
      required: true,
    },
    { ...text, purpose: 'dmarc', name: `_dmarc.${domain.name}`, value: 'v=DMARC1; p=none', required: false },
  ]
}
