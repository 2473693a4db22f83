import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

/** Characters of a domain name as A-labels: leaves room for the names of its records, and for addresses below it. */
export const maxDomainLength = 200
/** What the return path is by default, below the domain. */
export const defaultReturnPath = 'send'
/** Characters of a return path below its domain. */
export const maxReturnPathBelow = 63
/** Characters of the whole name of a return path: an address has 49 more, and 254 at most (RFC 5321 §4.5.3.1.3). */
export const maxReturnPathLength = 205
/** Domains an account can have. */
export const maxDomains = 1_000

const name = z
  .string()
  .min(1)
  .max(maxDomainLength)
  .regex(/^[^\s.@/:]+(?:\.[^\s.@/:]+)+\.?$/, 'must be a domain name such as example.com')
  .meta({
    format: 'idn-hostname',
    description: `The part of the sender's address after the \`@\`. Kept in lower case; characters beyond ASCII become \`xn--…\`. At most ${maxDomainLength} characters.`,
    example: 'example.com',
  })

const returnPath = z
  .string()
  .max(maxReturnPathBelow)
  .regex(
    /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*$/,
    'must be a label, or several with dots between them: letters, digits and hyphens inside',
  )
  .meta({
    description: `Where bounces go, as a name below the domain: of \`bounces\` and \`example.com\` comes \`bounces.example.com\`. Kept in lower case. At most ${maxReturnPathLength} characters with the domain. Default: \`${defaultReturnPath}\`.`,
    example: defaultReturnPath,
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
    status: recordStatus.meta({
      description:
        'What the last check found. `pending`: not checked yet. `missing`: not there, or not to be published yet, as the hint then says. `dangling`: a CNAME that leads nowhere. `mismatch`: another value. `multiple`: several records where only one may be. `timeout`, `server_failure`: the name servers did not answer, or with an error; this changes nothing for the domain.',
    }),
    hint: z.string().nullable().meta({ description: 'What was found, and what to do.' }),
  })
  .meta({ id: 'DomainRecord', description: 'A DNS record to publish.' })

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
      status: 'missing',
      hint: 'There is no MX record at "send.example.com". Publish it as shown.',
    },
  ],
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
    lastCheckedAt: timestamp.nullable(),
    nextCheckAt: timestamp.nullable().meta({ description: 'Null: not checked any more by itself.' }),
    verifiedAt: timestamp.nullable().meta({ description: 'When it last became verified.' }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: 'Domain', description: 'A domain to send from.', example })

const createDomain = z
  .strictObject({ name, returnPath: returnPath.optional() })
  .meta({ id: 'CreateDomain', description: 'The domain to add.', example: { name: 'example.com' } })

const idParam = z.object({ id: idSchema('domain', 'The sending domain.') })

export type Domain = z.infer<typeof domain>
export type DomainRecord = z.infer<typeof record>
export type CreateDomain = z.infer<typeof createDomain>

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
        errors: ['conflict'],
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
  delete: {
    method: 'DELETE',
    path: '/v1/domains/:id',
    summary: 'Delete a sending domain',
    description:
      'Nothing more is sent from it but what is under way in this moment, and its keys are gone. Emits `domain.deleted`.',
    pathParams: idParam,
    ...outcome(
      { operationId: 'deleteDomain', tag: 'Domains', permission: 'domains:write', errors: ['not_found'] },
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
        hasBody: true,
        idempotency: 'after-work',
        errors: ['not_found'],
      },
      { 200: domain },
    ),
  },
})
