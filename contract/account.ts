import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { mode } from './mode.ts'
import { outcome } from './route.ts'

const c = initContract()

/** Objects of one kind are counted up to this number. */
export const mostCounted = 10_000

const count = (description: string) => z.int().min(0).meta({ description })

const allowance = z
  .object({
    used: count(`How many there are, up to ${mostCounted.toLocaleString('en')}.`),
    limit: z.int().nullable().meta({ description: 'How many there may be. Null: there is no limit.' }),
  })
  .meta({
    id: 'Allowance',
    description: 'How many objects of one kind an account has, and may have.',
    example: { used: 12, limit: 1_000 },
  })

const monthExample = {
  since: '2026-03-01T00:00:00.000Z',
  until: '2026-04-01T00:00:00.000Z',
  emails: { sent: 1_200, delivered: 1_180, bounced: 14, complained: 1, failed: 2, suppressed: 3 },
  webhooks: { attempts: 5_020, succeededDeliveries: 4_990, failedDeliveries: 2 },
}

const month = z
  .object({
    since: timestamp.meta({
      description: 'Where the month begins in UTC, or the first day of it that statistics are kept of.',
    }),
    until: timestamp.meta({ description: 'Where the month ends.' }),
    emails: z
      .object({
        sent: count('Recipients whose message a mail server has accepted.'),
        delivered: count('Recipients whose message has reached their own mail server.'),
        bounced: count('Recipients whose message bounced.'),
        complained: count('Recipients who reported the message as spam.'),
        failed: count('Recipients that this service gave up on.'),
        suppressed: count('Recipients that were not written to.'),
      })
      .meta({ description: 'What happened to recipients of emails.' }),
    webhooks: z
      .object({
        attempts: count('Requests to endpoints.'),
        succeededDeliveries: count('Events that an endpoint accepted.'),
        failedDeliveries: count('Events that failed for good, after their last attempt.'),
      })
      .meta({ description: 'What happened to deliveries to webhooks.' }),
  })
  .meta({ id: 'UsageOfMonth', description: 'What an account did in a month of UTC.', example: monthExample })

export const accountFields = {
  id: idSchema('account', 'Identifies the account.'),
  name: z.string(),
  plan: z.string().meta({ description: 'The name of the plan. The operator of the service sets it.' }),
  createdAt: timestamp,
}

export const usageFields = {
  mode,
  requests: z
    .object({
      limit: z.int().meta({ description: 'Requests with keys that the plan allows in a minute.' }),
      used: count(
        'Requests of the present minute. Processes take requests in lots, so it may count some that are still to come.',
      ),
      resetAt: timestamp.meta({ description: 'When the minute ends.' }),
      busiest: z
        .object({
          at: timestamp.meta({ description: 'When the minute began.' }),
          used: count('Requests of that minute, counted as `used` is.'),
        })
        .nullable()
        .meta({ description: 'The busiest minute of the last hour. Null: no request came.' }),
    })
    .meta({ description: 'Requests with API keys, of both modes. Those of users of the dashboard are not counted.' }),
  webhooks: allowance,
  apiKeys: allowance,
  domains: allowance,
  members: allowance,
  invitations: allowance,
  months: z.array(month).length(2).meta({ description: 'This month and the one before, of the mode.' }),
}

export const accountExample = {
  id: exampleId('account'),
  name: 'Acme',
  plan: 'scale',
  createdAt: '2026-03-01T09:30:00.000Z',
}

export const usageExample = {
  mode: 'live',
  requests: {
    limit: 30_000,
    used: 120,
    resetAt: '2026-03-14T09:31:00.000Z',
    busiest: { at: '2026-03-14T09:12:00.000Z', used: 840 },
  },
  webhooks: { used: 12, limit: 1_000 },
  apiKeys: { used: 3, limit: 100 },
  domains: { used: 2, limit: 1_000 },
  members: { used: 4, limit: null },
  invitations: { used: 0, limit: 200 },
  months: [monthExample, { ...monthExample, since: '2026-02-01T00:00:00.000Z', until: '2026-03-01T00:00:00.000Z' }],
}

const accountUsage = z.object({ ...accountFields, ...usageFields }).meta({
  id: 'AccountUsage',
  description:
    'An account, its plan, and what it uses. `webhooks` are those of both modes, `apiKeys` those of the mode, revoked ones too. `invitations` are those that are neither accepted nor expired.',
  example: { ...accountExample, ...usageExample },
})

export type Account = z.infer<typeof accountUsage>
export type Allowance = z.infer<typeof allowance>

export const account = c.router({
  get: {
    method: 'GET',
    path: '/v1/account',
    summary: 'Get plan and usage',
    description:
      'The account of the caller, its plan, and what it uses of its limits. Figures of months are those of the mode of the caller.',
    ...outcome({ operationId: 'getAccount', tag: 'Account', permission: 'statistics:read' }, { 200: accountUsage }),
  },
})
