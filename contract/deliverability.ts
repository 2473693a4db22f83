import { z } from 'zod'
import { timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'

/** Bounced live emails of a domain, the newest, whose recipients are counted. */
export const countedBounces = 500

/** In the order in which they are returned. */
export const deliverabilityChecks = [
  'spf',
  'dkim',
  'return_path',
  'dmarc',
  'reverse_dns',
  'mta_sts',
  'tls_rpt',
] as const

const checkExample = {
  check: 'dmarc',
  status: 'warn',
  summary: 'Receivers report mail that fails DMARC, and accept it all the same: the policy is "none".',
  advice: 'Once the reports show that your own mail passes, publish "v=DMARC1; p=quarantine" at "_dmarc.example.com".',
  found: ['v=DMARC1; p=none'],
}

const deliverabilityCheck = z
  .object({
    check: z.enum(deliverabilityChecks).meta({
      description:
        '`spf`, `dkim`, `return_path`: the records of the domain that emails need. `dmarc`: its policy. `reverse_dns`: whether the addresses of the host that sends lead back to its name. `mta_sts`, `tls_rpt`: how mail to the domain is protected on its way; only the DNS records are looked at, and the policy file is not fetched.',
    }),
    status: z.enum(['pass', 'warn', 'fail', 'optional', 'unknown', 'skipped']).meta({
      description:
        '`warn`: works, and could be better. `fail`: emails are refused, or land in spam. `optional`: not there, and not needed to send. `unknown`: the name servers did not answer. `skipped`: does not apply here.',
    }),
    summary: z.string().meta({ description: 'What was found, for people.' }),
    advice: z.string().nullable().meta({ description: 'What to do; null: nothing.' }),
    found: z.array(z.string()).meta({ description: 'The values in the DNS that it was judged by, shortened.' }),
  })
  .meta({ id: 'DeliverabilityCheck', description: 'One check.', example: checkExample })

const latestReason = z
  .string()
  .nullable()
  .meta({ description: 'Why the latest of them bounced, with `…` in place of addresses.' })

const bounceExample = { domain: 'gmail.com', bounced: 3, reason: '550 5.1.1 No such user' }
const providerExample = { kind: 'provider' as const, name: 'Gmail', bounced: 4, reason: '550 5.1.1 No such user' }

/** The deliverability of a domain: checks of what receivers look at, and bounces. */
export const deliverability = z
  .object({
    domainId: idSchema('domain', 'The sending domain.'),
    checkedAt: timestamp,
    checks: z.array(deliverabilityCheck),
    bounces: z
      .object({
        since: timestamp.nullable().meta({
          description:
            'When the oldest email was sent that was counted; null: no live email of the domain bounced, or the caller is in test mode.',
        }),
        byRecipientDomain: z.array(
          z
            .object({
              domain: z.string().meta({ description: 'The part after the `@` of the recipients.' }),
              bounced: z.int().min(1),
              reason: latestReason,
            })
            .meta({
              id: 'BouncesOfRecipientDomain',
              description: 'Bounces by recipient domain.',
              example: bounceExample,
            }),
        ),
        byProvider: z.array(
          z
            .object({
              kind: z.enum(['provider', 'domain']).meta({
                description:
                  '`provider`: a well-known mailbox provider, with all its domains. `domain`: a domain that belongs to none.',
              }),
              name: z.string().meta({
                description: 'Of `provider` as people know it, such as `Gmail`; of `domain` the domain.',
              }),
              bounced: z.int().min(1),
              reason: latestReason,
            })
            .meta({
              id: 'BouncesOfProvider',
              description: 'Bounces by mailbox provider.',
              example: providerExample,
            }),
        ),
      })
      .meta({
        description: `Counts the bounced recipients of the newest ${countedBounces} bounced live emails from this domain, by their domain and by mailbox provider. Each list has at most 20 entries, the largest first. In test mode there are none.`,
      }),
  })
  .meta({
    id: 'DomainDeliverability',
    description: 'How receivers see the mail of a domain.',
    example: {
      domainId: exampleId('domain'),
      checkedAt: '2026-03-01T09:31:00.000Z',
      checks: [checkExample],
      bounces: { since: '2026-02-20T08:00:00.000Z', byRecipientDomain: [bounceExample], byProvider: [providerExample] },
    },
  })

export type DomainDeliverability = z.infer<typeof deliverability>
export type DeliverabilityCheck = z.infer<typeof deliverabilityCheck>
