import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { z } from 'zod'
import { openSecretBox } from '../../server/config/encryption-key.ts'
import { connect, type Db } from '../../server/database/connection.ts'
import { migrateToLatest } from '../../server/database/migrate.ts'
import { installQueue } from '../../server/queue/queue.ts'
import { type SecretBox, secretBox } from '../../server/secrets/secret-box.ts'
import { startArguments } from '../support/start-command.ts'
import type { Processes, Running } from './processes.ts'

/* The building blocks of benchmarks, each a separate process. */

/** A PostgreSQL server for one benchmark. */
export type Cluster = {
  /** Creates a database with the whole schema and no data. */
  create(name: string): Promise<World>
  /** Creates a database without tables, for another program. */
  createEmpty(name: string): Promise<World>
  /** Copies a database that has no connections. */
  copy(from: string, name: string): Promise<World>
  /** Drops a database and closes its connections. */
  drop(name: string): Promise<void>
}

/** One database, with a pool for the benchmark itself. */
export type World = AsyncDisposable & {
  name: string
  connectionString: string
  db: Db
  box: SecretBox
  /** Closes the pool. The database stays. */
  close(): Promise<void>
}

/** The key that seals the secrets of webhooks, the same in all databases of a run. */
const encryptionKey = randomBytes(32)

export type ClusterOptions = {
  /** Settings of PostgreSQL that differ from its defaults. */
  settings?: Record<string, string>
  /** File for its log. Default: none. */
  logFile?: string
}

export async function startCluster(
  processes: Processes,
  { settings = {}, logFile }: ClusterOptions = {},
): Promise<Cluster> {
  const server = await processes.start({
    name: 'database owner',
    childrenName: 'postgres',
    file: import.meta.resolve('./programs/database.ts'),
    args: [JSON.stringify(settings), ...(logFile === undefined ? [] : [logFile])],
  })
  const adminUrl = await server.ask('connectionString', null, z.string())

  async function administer(statement: string): Promise<void> {
    const client = new pg.Client({ connectionString: adminUrl })
    await client.connect()
    try {
      await client.query(statement)
    } finally {
      await client.end()
    }
  }

  async function open(name: string): Promise<World> {
    const url = new URL(adminUrl)
    url.pathname = `/${name}`
    const connectionString = url.href
    // Errors of idle connections are ignored: the next query reports them.
    const db = connect({ connectionString, max: 4, applicationName: 'postern bench', onError: () => undefined })
    let closing: Promise<void> | undefined
    const close = () => {
      closing ??= db.destroy()
      return closing
    }
    return { name, connectionString, db, box: secretBox(encryptionKey), close, [Symbol.asyncDispose]: close }
  }

  async function createEmpty(name: string): Promise<World> {
    await administer(`CREATE DATABASE ${pg.escapeIdentifier(name)}`)
    return open(name)
  }

  return {
    createEmpty,
    async create(name) {
      const world = await createEmpty(name)
      await migrateToLatest(world.db)
      await openSecretBox(world.db, encryptionKey)
      await installQueue(world.connectionString, () => undefined)
      return world
    },
    async copy(from, name) {
      // Copying files is faster than writing much data through the WAL.
      await administer(
        `CREATE DATABASE ${pg.escapeIdentifier(name)} TEMPLATE ${pg.escapeIdentifier(from)} STRATEGY file_copy`,
      )
      return open(name)
    },
    drop: (name) => administer(`DROP DATABASE ${pg.escapeIdentifier(name)} WITH (FORCE)`),
  }
}

export type Service = Running & { url: string }

export type ServiceOptions = {
  /** Name in the results. Default: service. */
  name?: string
  /** Value of ROLES. Default: api,worker. */
  roles?: 'api' | 'worker' | 'api,worker'
  /** Settings in addition to the usual ones; undefined removes a usual one. */
  env?: Record<string, string | undefined>
  /** Options of Node. */
  nodeArgs?: readonly string[]
}

const unlimited = 'free=1000000000,pro=1000000000,scale=1000000000'

/** Starts the service as `npm start` does, on a database of the benchmark and any free port. */
export async function startService(
  processes: Processes,
  world: World,
  { name = 'service', roles = 'api,worker', env = {}, nodeArgs = [] }: ServiceOptions = {},
): Promise<Service> {
  const running = await processes.start({
    name,
    file: import.meta.resolve('../../server/main.ts'),
    nodeArgs: [...startArguments().options, ...nodeArgs],
    env: {
      PORT: '0',
      DATABASE_URL: world.connectionString,
      ENCRYPTION_KEY: encryptionKey.toString('base64'),
      ROLES: roles,
      RATE_LIMITS: unlimited,
      // A relay that no benchmark uses: with the capture, each start would print that no email leaves.
      MAIL_TRANSPORT: 'relay',
      SMTP_URL: 'smtp://127.0.0.1:9',
      MAIL_HOSTNAME: 'mail.postern.example',
      WEBHOOK_ALLOW_HTTP: 'true',
      WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true',
      LOG_LEVEL: 'warn',
      // Short, so that requests that still hang at the end do not delay the benchmark.
      SHUTDOWN_TIMEOUT_SECONDS: '2',
      NODE_ENV: 'production',
      ...env,
    },
    readyLine: /(?:listens on|answers) (http:\/\/[\w.:]+)/,
    // The usual lines about the configuration, and warnings for public services.
    usualLine:
      /^(Email leaves over the relay |No email leaves this machine|Webhooks may lead to |There is no user of the dashboard yet)|"msg":"(PUBLIC_URL|INBOUND_SMTP_PORT) is not set/,
  })
  const url = running.ready?.[1]
  if (url === undefined) throw new Error('the service did not tell where it listens')
  return { ...running, url }
}

/** An endpoint that counts requests by kind: the first part of their path, as `programs/receiver.ts` defines it. */
export type Receiver = {
  url: string
  /** Resets all counts. From then on it records event ids, their first arrivals, or only counts. */
  reset(keeping: 'nothing' | 'ids' | 'arrivals'): Promise<void>
  count(kind: string): Promise<number>
  /** Returns the number of connections opened since the reset. */
  connections(): Promise<number>
  /** Also listens on another loopback address, with the same port. Linux has all of 127.0.0.0/8. */
  listenToo(address: string): Promise<void>
  /** Makes a path respond as the kind `as`. Null: as its own kind. */
  behave(path: string, as: string | null): Promise<void>
  /** Resolves when `count` requests of a kind have arrived since the reset. */
  until(kind: string, count: number): Promise<void>
  /** Returns event ids and the times of their first arrivals. Milliseconds since 1970. */
  arrivals(): Promise<[string, number][]>
  /** Returns the number of repeated arrivals. */
  duplicates(): Promise<number>
}

export async function startReceiver(processes: Processes): Promise<Receiver> {
  const running = await processes.start({ name: 'receiver', file: import.meta.resolve('./programs/receiver.ts') })
  return {
    url: await running.ask('url', null, z.string()),
    reset: (keeping) => running.ask('reset', keeping, z.undefined()),
    count: (kind) => running.ask('count', kind, z.number()),
    connections: () => running.ask('connections', null, z.number()),
    listenToo: (address) => running.ask('listenToo', address, z.undefined()),
    behave: (path, as) => running.ask('behave', { path, as }, z.undefined()),
    until: (kind, count) => running.ask('until', { kind, count }, z.undefined()),
    arrivals: () => running.ask('arrivals', null, z.array(z.tuple([z.string(), z.number()]))),
    duplicates: () => running.ask('duplicates', null, z.number()),
  }
}

const loadResult = z.object({
  seconds: z.number(),
  latencies: z.array(z.number()),
  nextNumber: z.number(),
  statuses: z.array(z.object({ status: z.number(), group: z.string().optional(), count: z.number() })),
})

export type LoadResult = z.output<typeof loadResult>

export type LoadOptions = {
  origins: readonly string[]
  /** Sent in rotation. `{n}` in a body is replaced by a number that is unique in this load. */
  requests: readonly {
    method: 'GET' | 'POST' | 'PATCH'
    path: string
    headers: Record<string, string>
    body?: string
  }[]
  seconds: number
  /** Most requests; the load may end before `seconds`. Default: no limit. */
  count?: number
  /** Most requests in flight. */
  connections: number
  /** Requests per second. Default: the next one as soon as one is answered. */
  rate?: number
  /** Header by whose value statuses are counted. */
  groupBy?: string
}

export type Load = {
  /** Sends requests. Rejects when one gets no response, or another status than `status` unless that is null. */
  run(options: LoadOptions, status: number | null): Promise<LoadResult>
  /** Stops sending requests. `run` resolves when those in flight are answered. */
  stop(): Promise<void>
}

export async function startLoad(processes: Processes, name = 'load'): Promise<Load> {
  const running = await processes.start({ name, file: import.meta.resolve('./programs/load.ts') })
  let firstNumber = 1
  return {
    async run({ rate = null, count = null, groupBy = null, ...options }, status) {
      const result = await running.ask('run', { ...options, rate, count, groupBy, firstNumber }, loadResult)
      firstNumber = result.nextNumber
      const wrong = status === null ? undefined : result.statuses.find((entry) => entry.status !== status)
      if (wrong !== undefined) throw new Error(`${wrong.count} requests were answered ${wrong.status}, not ${status}`)
      return result
    },
    stop: () => running.ask('stop', null, z.undefined()),
  }
}

/** Starts a minimal API on Express as a baseline: see `programs/bare-express.ts`. */
export async function startBareExpress(
  processes: Processes,
  { connectionString }: World,
  { accountId }: { accountId: string },
): Promise<{ url: string }> {
  const running = await processes.start({
    name: 'bare Express',
    file: import.meta.resolve('./programs/bare-express.ts'),
    args: [connectionString, accountId],
    // As for the service, and as Express recommends.
    env: { NODE_ENV: 'production' },
  })
  return { url: await running.ask('url', null, z.string()) }
}
