import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { deliverability } from './deliverability.ts'
import { boundedString, timestamp, wellFormedString } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

/** Characters of a domain name as A-labels: leaves room for the names of its records, and for addresses below it. */
export const maxDomainLength = 200
/** The default return path, below the domain. */
export const defaultReturnPath = 'send'
/** Characters of a return path below its domain. */
export const maxReturnPathBelow = 63
/** Characters of the whole name of a return path: an address has 49 more, and 254 at most (RFC 5321 §4.5.3.1.3). */
export const maxReturnPathLength = 205
/** Bits that an RSA key of a client's own may have: RFC 8301 §3.2 advises 2,048, and 4,096 is the most receivers need to know. */
export const rsaBits = { min: 2_048, max: 4_096 }
/** Days that mail may be on its way which was signed with keys that sign no more. */
export const retiredDays = 7
/** Rotations of a domain whose keys are remembered. */
export const maxRotations = 10
/** Domains an account can have. */
export const maxDomains = 1_000

const name = wellFormedString(maxDomainLength)
  .min(1)
  .regex(/^[^\s.@/:]+(?:\.[^\s.@/:]+)+\.?$/, 'must be a domain name such as example.com')
  .meta({
    format: 'idn-hostname',
    description: `The part of the sender's address after the \`@\`. Kept in lower case; characters beyond ASCII become \`xn--…\`. At most ${maxDomainLength} characters.`,
    example: 'example.com',
  })

const returnPath = boundedString(maxReturnPathBelow)
  .regex(
    /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*$/,
    'must be a label, or several with dots between them: letters, digits and hyphens inside',
  )
  .meta({
    description: `Where bounces go, as a name below the domain: of \`bounces\` and \`example.com\` comes \`bounces.example.com\`. Kept in lower case. At most ${maxReturnPathLength} characters with the domain. Default: \`${defaultReturnPath}\`.`,
    example: defaultReturnPath,
  })

const ownKey = (kind: string, format: string) =>
  z.strictObject({
    selector: boundedString(63)
      .min(1)
      .regex(
        /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?$/,
        'must be one label: letters, digits and hyphens inside, 63 characters at most',
      )
      .meta({
        description: 'Where its record stands: at `<selector>._domainkey.<domain>`. Kept in lower case.',
        example: 's1',
      }),
    privateKey: wellFormedString(8_192)
      .min(1)
      .meta({ format, description: `${kind} in PEM, without a passphrase. Kept encrypted, and never shown.` }),
  })

const dkimKeys = z
  .strictObject({
    rsa: ownKey(
      `A private key of RSA with ${rsaBits.min.toLocaleString('en')} to ${rsaBits.max.toLocaleString('en')} bits (PKCS #8 or PKCS #1)`,
      'rsa-private-key',
    ).optional(),
    ed25519: ownKey('A private key of Ed25519 (PKCS #8)', 'ed25519-private-key').optional(),
  })
  .meta({
    id: 'DkimKeys',
    description:
      'Private keys of your own, whose records may be published already. Of a kind that is not given, one is made.',
  })

const status = z.enum(['pending', 'verified', 'failed']).meta({
  description:
    '`pending`: checked again by itself for 72 hours. `verified`: live keys can send from it. `failed`: not checked any more by itself, since required records were missing for 72 hours or, after it was verified, on three daily checks in a row.',
})

const recordStatus = z.enum([
  'pending',
  'verified',
  'missing',
  'dangling',
  'mismatch',
  'multiple',
  'timeout',
  'server_failure',
])

const record = z
  .object({
    purpose: z.enum(['dkim_rsa', 'dkim_ed25519', 'spf', 'return_path', 'dmarc']).meta({
      description:
        '`dkim_…`: the keys of the signatures. `spf` and `return_path`: who sends for the return path, and where bounces go. `dmarc`: what receivers do with mail that is neither.',
    }),
    type: z.enum(['TXT', 'MX']),
    name: z.string().meta({ description: 'The whole name. Some DNS providers append the domain by themselves.' }),
    value: z.string().meta({ description: 'Of a TXT record, in one piece: beyond 255 characters, DNS cuts it.' }),
    priority: z.int().nullable().meta({ description: 'Of an MX record; null for others.' }),
    ttl: z.int().meta({ description: 'Seconds. A suggestion.' }),
    required: z.boolean().meta({ description: 'Whether the domain is verified only with it.' }),
    key: z.enum(['signing', 'next']).nullable().meta({
      description:
        'Of a DKIM record: `signing`: of the keys that sign; `next`: of those that sign once their records are seen. Null for other records.',
    }),
    status: recordStatus.meta({
      description:
        'What the last check found. `pending`: not checked yet. `missing`: not there, or not to be published yet, as the hint then says. `dangling`: a CNAME that leads nowhere. `mismatch`: another value. `multiple`: several records where only one may be. `timeout`, `server_failure`: the name servers did not answer, or with an error; this changes nothing for the domain.',
    }),
    hint: z.string().nullable().meta({ description: 'What was found, and what to do.' }),
  })
  .meta({ id: 'DomainRecord', description: 'A DNS record to publish.' })

const retiredRecord = z
  .object({
    purpose: record.shape.purpose,
    type: record.shape.type,
    name: z.string(),
    value: z.string(),
    retiredAt: timestamp.meta({ description: 'When other keys began to sign.' }),
    removableAt: timestamp.meta({
      description: `From when on it may be removed: ${retiredDays} days later. Mail that was signed before is verified with it.`,
    }),
  })
  .meta({ id: 'RetiredDomainRecord', description: 'A DNS record of a key that signs no more.' })

const example = {
  id: exampleId('domain'),
  name: 'example.com',
  returnPath: defaultReturnPath,
  status: 'pending',
  records: [
    {
      purpose: 'return_path',
      type: 'MX',
      name: 'send.example.com',
      value: 'mail.postern.example',
      priority: 10,
      ttl: 3600,
      required: true,
      key: null,
      status: 'missing',
      hint: 'There is no MX record at "send.example.com". Publish it as shown.',
    },
  ],
  retiredRecords: [],
  lastCheckedAt: '2026-03-01T09:31:00.000Z',
  nextCheckAt: '2026-03-01T09:33:00.000Z',
  verifiedAt: null,
  createdAt: '2026-03-01T09:30:00.000Z',
  updatedAt: '2026-03-01T09:31:00.000Z',
}

const domain = z
  .object({
    id: idSchema('domain', 'Identifies the sending domain.'),
    name: z.string(),
    returnPath: z.string().meta({ description: 'Where bounces go, as a name below the domain.' }),
    status,
    records: z.array(record).meta({ description: 'What to publish in the DNS, and what of it was found.' }),
    retiredRecords: z.array(retiredRecord).meta({
      description: `Records of keys that sign no more, the newest first: of the last ${maxRotations} rotations.`,
    }),
    lastCheckedAt: timestamp.nullable(),
    nextCheckAt: timestamp.nullable().meta({ description: 'Null: not checked any more by itself.' }),
    verifiedAt: timestamp.nullable().meta({ description: 'When it last became verified.' }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Domain', description: 'A domain to send from.', example })

const createDomain = z
  .strictObject({ name, returnPath: returnPath.optional(), dkimKeys: dkimKeys.optional() })
  .meta({ id: 'CreateDomain', description: 'The domain to add.', example: { name: 'example.com' } })

const rotateKeys = z
  .strictObject({ dkimKeys: dkimKeys.optional() })
  .meta({ id: 'RotateKeys', description: 'The keys to take, if not new ones.', example: {} })

const idParam = z.object({ id: idSchema('domain', 'The sending domain.') })

export type Domain = z.infer<typeof domain>
export type DomainRecord = z.infer<typeof record>
export type CreateDomain = z.infer<typeof createDomain>
export type RotateKeys = z.infer<typeof rotateKeys>
export type DkimKeysInput = z.infer<typeof dkimKeys>

export const domains = c.router({
  create: {
    method: 'POST',
    path: '/v1/domains',
    summary: 'Add a sending domain',
    description: `Makes its DKIM keys and answers the DNS records to publish. They are looked up from a minute later on, with growing pauses. Emits \`domain.created\`. An account can have ${maxDomains.toLocaleString('en')} domains.`,
    body: createDomain,
    ...outcome(
      {
        operationId: 'createDomain',
        tag: 'Domains',
        permission: 'domains:write',
        hasBody: true,
        // Its keys take long: no connection to the database is held meanwhile.
        idempotency: 'after-work',
        errors: ['conflict', 'rule_violation'],
      },
      { 201: domain },
    ),
  },
  list: {
    method: 'GET',
    path: '/v1/domains',
    summary: 'List sending domains',
    description: 'Newest first.',
    query: z.strictObject(pageQuery),
    ...outcome(
      { operationId: 'listDomains', tag: 'Domains', permission: 'domains:read' },
      { 200: pageOf(domain, 'DomainPage') },
    ),
  },
  get: {
    method: 'GET',
    path: '/v1/domains/:id',
    summary: 'Get a sending domain',
    description: 'One domain, with what the last check found of each record.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'getDomain', tag: 'Domains', permission: 'domains:read', errors: ['not_found'] },
      { 200: domain },
    ),
  },
  deliverability: {
    method: 'GET',
    path: '/v1/domains/:id/deliverability',
    summary: 'Check the deliverability of a domain',
    description:
      'Looks up what receivers look at, for at most ten seconds, and counts recent bounces by mailbox provider and by recipient domain. Changes nothing: `verify` checks the records and stores what it finds.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'getDomainDeliverability',
        tag: 'Domains',
        permission: 'domains:read',
        errors: ['not_found'],
      },
      { 200: deliverability },
    ),
  },
  delete: {
    method: 'DELETE',
    path: '/v1/domains/:id',
    summary: 'Delete a sending domain',
    description:
      'Nothing more is sent from it but what is under way in this moment, and its keys are gone. Emits `domain.deleted`.',
    pathParams: idParam,
    ...outcome(
      {
        operationId: 'deleteDomain',
        tag: 'Domains',
        permission: 'domains:write',
        liveKeyOnly: true,
        errors: ['not_found'],
      },
      { 204: c.noBody() },
    ),
  },
  verify: {
    method: 'POST',
    path: '/v1/domains/:id/verify',
    summary: 'Check the records now',
    description:
      'Looks the records up, for at most five seconds, and answers what was found. Emits `domain.verified` when the domain becomes verified. One that had failed is checked by itself again.',
    pathParams: idParam,
    body: z.strictObject({}).optional(),
    ...outcome(
      {
        operationId: 'verifyDomain',
        tag: 'Domains',
        permission: 'domains:write',
        liveKeyOnly: true,
        hasBody: true,
        idempotency: 'after-work',
        errors: ['not_found'],
      },
      { 200: domain },
    ),
  },
  rotateKeys: {
    method: 'POST',
    path: '/v1/domains/:id/rotate-keys',
    summary: 'Rotate the DKIM keys',
    description: `Puts new keys beside those that sign; \`records\` shows theirs too, as \`next\`. The present keys sign until a check has seen the new records, by itself or by \`verify\`: RSA, and Ed25519 where that of the present keys is published. They are looked for from a minute later on, with growing pauses, for 72 hours, then daily. Rotating again before that replaces the keys that wait. Of the keys that sign no more, \`retiredRecords\` tells from when on their records may be removed: ${retiredDays} days later. Emits no event: the domain stays as it is.`,
    pathParams: idParam,
    body: rotateKeys.optional(),
    ...outcome(
      {
        operationId: 'rotateDomainKeys',
        tag: 'Domains',
        permission: 'domains:write',
        liveKeyOnly: true,
        hasBody: true,
        idempotency: 'after-work',
        errors: ['not_found', 'conflict', 'rule_violation'],
      },
      { 200: domain },
    ),
  },
})
