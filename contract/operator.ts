import { initContract } from '@ts-rest/core'
import { z } from 'zod'
import { accountExample, accountFields, usageExample, usageFields } from './account.ts'
import { boundedString, line, timestamp } from './fields.ts'
import { exampleId, idSchema } from './ids.ts'
import { memberPage } from './members.ts'
import { pageOf, pageQuery } from './pagination.ts'
import { outcome } from './route.ts'

const c = initContract()

/** Most destinations and tables that are told of. */
export const mostDestinations = 20
export const mostTables = 100
/** A process that was not seen for this long counts as not alive. Seconds. */
export const processSilenceSeconds = 60

const lastUsedAt = timestamp.nullable().meta({
  description: 'When an API key of the account was last used, of its newest 1,000 keys. Null: never.',
})

const listedAccount = z.object({ ...accountFields, lastUsedAt }).meta({
  id: 'ListedAccount',
  description: 'An account of the service.',
  example: { ...accountExample, lastUsedAt: '2026-03-14T09:30:00.000Z' },
})

const accountDetails = z.object({ ...accountFields, ...usageFields, lastUsedAt }).meta({
  id: 'AccountDetails',
  description: 'An account of the service, and what it uses in live mode.',
  example: { ...accountExample, ...usageExample, lastUsedAt: '2026-03-14T09:30:00.000Z' },
})

const planName = line(100).min(1).meta({ description: 'The name of a plan of `RATE_LIMITS`.', example: 'pro' })

const updateAccount = z.strictObject({ plan: planName }).meta({
  id: 'UpdateAccount',
  description: 'The plan that the account gets.',
  example: { plan: 'pro' },
})

const plan = z
  .object({
    name: z.string(),
    requestsPerMinute: z.int().meta({ description: 'Requests with keys that an account may send in a minute.' }),
  })
  .meta({ id: 'Plan', description: 'A plan of the service.', example: { name: 'pro', requestsPerMinute: 3_000 } })

const plans = z.object({ data: z.array(plan) }).meta({
  id: 'Plans',
  description: 'The plans of `RATE_LIMITS`, the smallest first.',
  example: { data: [plan.meta()?.example] },
})

const count = (description: string) => z.int().min(0).meta({ description })

const queueDepth = z
  .object({
    ready: count('Those whose time has come.'),
    scheduled: count('Those that wait for a time: retries, and emails sent later.'),
    claimed: count('Those that a process works on.'),
  })
  .meta({
    id: 'QueueDepth',
    description: 'What is in a queue, as of the last count, at most a minute ago.',
    example: { ready: 3, scheduled: 120, claimed: 8 },
  })

const processExample = {
  host: 'mail-1',
  pid: 4_242,
  roles: ['api', 'worker'],
  version: '0.1.0',
  node: 'v24.1.0',
  startedAt: '2026-03-14T08:00:00.000Z',
  lastSeenAt: '2026-03-14T09:30:00.000Z',
  isAlive: true,
}

const runningProcess = z
  .object({
    host: z.string().meta({ description: 'The name of its machine or container.' }),
    pid: z.int().meta({ description: 'Its number there.' }),
    roles: z.array(z.enum(['api', 'worker'])).meta({ description: 'What it does.' }),
    version: z.string().meta({ description: 'Its version of Postern.' }),
    node: z.string().meta({ description: 'Its version of Node.' }),
    startedAt: timestamp,
    lastSeenAt: timestamp.meta({ description: 'When it last told that it runs. It does so every 15 seconds.' }),
    isAlive: z
      .boolean()
      .meta({ description: `False: it has not told so for ${processSilenceSeconds} seconds, and was not stopped.` }),
  })
  .meta({ id: 'Process', description: 'A process of the service.', example: processExample })

const destinationExample = {
  accountId: exampleId('account'),
  host: 'hooks.example.com',
  dueSince: '2026-03-14T09:12:00.000Z',
  inFlight: 1,
  maxInFlight: 1,
  waitsFor: 'endpoint_limit',
}

const destination = z
  .object({
    accountId: idSchema('account', 'Whose webhooks it is a URL of.'),
    host: z.string().meta({ description: 'The host of the URL. No more of the URL is told.' }),
    dueSince: timestamp.meta({ description: 'Since when its oldest waiting delivery could have been sent.' }),
    inFlight: z.int().nullable().meta({ description: 'Requests to it under way. Null: not known.' }),
    maxInFlight: z
      .int()
      .nullable()
      .meta({ description: 'How many there may be now: fewer for a URL that is slow or fails. Null: not known.' }),
    waitsFor: z.enum(['endpoint_limit', 'account_share', 'claim']).nullable().meta({
      description:
        'What its deliveries wait for. `endpoint_limit`: for the endpoint to answer or to be tried again. `account_share`: for others of the account. `claim`: for their turn. Null: not known.',
    }),
  })
  .meta({ id: 'SlowDestination', description: 'A URL with deliveries that are late.', example: destinationExample })

const instance = z
  .object({
    at: timestamp.meta({ description: 'When this was read.' }),
    versions: z.object({
      postern: z.string().meta({ description: 'The version of the process that answered.' }),
      node: z.string().meta({ description: 'Its version of Node.' }),
      postgresql: z.string().meta({ description: 'The version of the database server.' }),
      migration: z.string().nullable().meta({ description: 'The newest migration of the database.' }),
    }),
    processes: z
      .array(runningProcess)
      .meta({ description: 'The processes that were not stopped, of the last day, at most 100; the newest first.' }),
    queues: z.object({
      outbox: count('Events whose deliveries are not written yet, up to 10,000.'),
      deliveries: queueDepth,
      emails: queueDepth,
    }),
    undeliveredSeconds: z.number().min(0).meta({
      description: 'Age of the oldest event that has a delivery to come, a retry too. Seconds; 0: there is none.',
    }),
    destinations: z
      .array(destination)
      .max(mostDestinations)
      .meta({
        description: `Up to ${mostDestinations} URLs with deliveries that are due, the longest due first, of 10,000 URLs.`,
      }),
  })
  .meta({
    id: 'Instance',
    description: 'How the service is doing.',
    example: {
      at: '2026-03-14T09:30:00.000Z',
      versions: { postern: '0.1.0', node: 'v24.1.0', postgresql: '18.0', migration: '0001-foundation' },
      processes: [processExample],
      queues: { outbox: 0, deliveries: queueDepth.meta()?.example, emails: queueDepth.meta()?.example },
      undeliveredSeconds: 1_080,
      destinations: [destinationExample],
    },
  })

const tableExample = { name: 'emails', rows: 120_000, bytes: 98_304_000, indexBytes: 24_576_000 }

const table = z
  .object({
    name: z.string().meta({ description: 'Its name. Those of queues begin with `pgboss.`.' }),
    rows: z
      .number()
      .min(0)
      .nullable()
      .meta({ description: 'About how many rows it has, as PostgreSQL last estimated. Null: it has not yet.' }),
    bytes: z.number().min(0).meta({ description: 'Bytes of the table with its indexes.' }),
    indexBytes: z.number().min(0).meta({ description: 'Bytes of its indexes.' }),
  })
  .meta({ id: 'TableSize', description: 'A table of the database.', example: tableExample })

const retentionExample = { what: 'events, deliveries and emails', days: 30, setting: 'RETENTION_DAYS' }

const storage = z
  .object({
    databaseBytes: z.number().min(0).meta({ description: 'Bytes of the whole database.' }),
    tables: z
      .array(table)
      .max(mostTables)
      .meta({ description: `The ${mostTables} largest tables, the largest first.` }),
    retention: z
      .array(
        z
          .object({
            what: z.string().meta({ description: 'What is deleted.' }),
            days: z.number().min(0).meta({ description: 'After how many days.' }),
            setting: z.string().nullable().meta({ description: 'The setting that says so. Null: it is fixed.' }),
          })
          .meta({ id: 'Retention', description: 'How long something is kept.', example: retentionExample }),
      )
      .meta({ description: 'How long what is kept.' }),
  })
  .meta({
    id: 'Storage',
    description: 'How large the database is, and how long what is kept.',
    example: { databaseBytes: 312_000_000, tables: [tableExample], retention: [retentionExample] },
  })

const listQuery = z.strictObject({
  ...pageQuery,
  search: boundedString(100)
    .min(1)
    .optional()
    .meta({ description: 'Only accounts whose name, in any letter case, or id begins with it.', example: 'acme' }),
})

const idParam = z.object({ id: idSchema('account', 'Identifies the account.') })

export type ListedAccount = z.infer<typeof listedAccount>
export type AccountDetails = z.infer<typeof accountDetails>
export type AccountListQuery = z.infer<typeof listQuery>
export type Plans = z.infer<typeof plans>
export type Instance = z.infer<typeof instance>
export type Storage = z.infer<typeof storage>
export type SlowDestination = z.infer<typeof destination>
export type RunningProcess = z.infer<typeof runningProcess>

const ofOperator = { tag: 'Operator', caller: 'operator', permission: null } as const

export const operator = c.router({
  listAccounts: {
    method: 'GET',
    path: '/v1/operator/accounts',
    summary: 'List accounts',
    description:
      'All accounts of the service, newest first. With `search`, 10,000 accounts are looked through for each page: a page may have fewer than `limit`, or none, and a `nextCursor`.',
    query: listQuery,
    ...outcome(
      { ...ofOperator, operationId: 'listOperatorAccounts' },
      { 200: pageOf(listedAccount, 'ListedAccountPage') },
    ),
  },
  getAccount: {
    method: 'GET',
    path: '/v1/operator/accounts/:id',
    summary: 'Get an account',
    description: 'One account with its plan, and what it uses of its limits in live mode.',
    pathParams: idParam,
    ...outcome({ ...ofOperator, operationId: 'getOperatorAccount', errors: ['not_found'] }, { 200: accountDetails }),
  },
  updateAccount: {
    method: 'PATCH',
    path: '/v1/operator/accounts/:id',
    summary: 'Change the plan of an account',
    description:
      'The new limit holds within 2 seconds in all processes. The audit log of the account tells who changed it. 422 for a plan that `RATE_LIMITS` does not have.',
    pathParams: idParam,
    body: updateAccount,
    ...outcome(
      {
        ...ofOperator,
        operationId: 'updateOperatorAccount',
        hasBody: true,
        errors: ['not_found', 'rule_violation'],
      },
      { 200: accountDetails },
    ),
  },
  listMembers: {
    method: 'GET',
    path: '/v1/operator/accounts/:id/members',
    summary: 'List the members of an account',
    description: 'The users of an account, those who became users first at the front.',
    pathParams: idParam,
    query: z.strictObject(pageQuery),
    ...outcome({ ...ofOperator, operationId: 'listOperatorMembers', errors: ['not_found'] }, { 200: memberPage }),
  },
  listPlans: {
    method: 'GET',
    path: '/v1/operator/plans',
    summary: 'List plans',
    description: 'The plans that an account can have.',
    ...outcome({ ...ofOperator, operationId: 'listPlans' }, { 200: plans }),
  },
  getInstance: {
    method: 'GET',
    path: '/v1/operator/instance',
    summary: 'See how the service is doing',
    description: 'Its versions, processes and queues, and the URLs with deliveries that are late.',
    ...outcome({ ...ofOperator, operationId: 'getInstance' }, { 200: instance }),
  },
  getStorage: {
    method: 'GET',
    path: '/v1/operator/storage',
    summary: 'See how large the database is',
    description: 'The size of the database by table, and how long what is kept.',
    ...outcome({ ...ofOperator, operationId: 'getStorage' }, { 200: storage }),
  },
})
