import type { NewKey } from '../../server/api-keys/service.ts'
import { type App, startApp } from '../../server/app.ts'
import type { Config } from '../../server/config/config.ts'
import type { Migrations } from '../../server/database/migrate.ts'
import { createDkimKeyMaker, type MakeDkimKeys } from '../../server/domains/generate-keys.ts'
import { type Clock, systemClock } from '../../server/lib/clock.ts'
import { createLogger } from '../../server/observability/logging.ts'
import type { WebhookChanges } from '../../server/webhook-delivery/webhook-changes.ts'
import { createKeyServices } from './api-keys.ts'
import { createTestClient, type TestClient } from './client.ts'
import type { TestTime } from './clock.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'

/** The keys of a test. All of the account `accountId` but `other` and `limited`. */
export type TestKeys = {
  live: string
  test: string
  /** May read everything. */
  read: string
  revoked: string
  /** Of another account. */
  other: string
  /** Of an account that may send one request a minute. */
  limited: string
}

export type TestService = AsyncDisposable & {
  url: string
  app: App
  database: TestDatabase
  /** Time as the service reads it. */
  clock: Clock
  accountId: string
  keys: TestKeys
  /** Calls it with the live key. */
  client: TestClient
  /** The lines that it has logged at the levels `warn` and above, one JSON object each. */
  logged: readonly string[]
  /** Stops everything. Throws when the service has logged an error that was not expected. */
  stop(): Promise<void>
}

export type TestServiceOptions = {
  /** Default: both. `api` alone starts faster, and delivers nothing. */
  roles?: Partial<Config['roles']>
  /** Time to be moved by the test. Default: the real one. */
  time?: TestTime
  /** Another process of this service: on its database and with its keys, and to be stopped before it. */
  beside?: TestService
  /** Default: `database`, as it is. */
  connectionString?: (direct: string) => string | Promise<string>
  /** Whether it is the point of the test that the service fails. Default: no. */
  expectErrors?: boolean
  maxBodyBytes?: number
  maxEmailBodyBytes?: number
  authFailuresPerMinute?: number
  /** Default: 0. */
  trustProxy?: number
  /** Default: nothing is traced. */
  tracing?: Config['tracing']
  /** Default: none. */
  identityProvider?: Config['identityProvider']
  /** Default: true. */
  requestLogs?: boolean
  webhooks?: Partial<Config['webhooks']>
  /** Default: 64 places, 16 requests in flight to an endpoint at most. */
  delivery?: Config['delivery']
  /** Default: captured, with no name server that answers. */
  mail?: Partial<Config['mail']>
  /** Default: not set. */
  publicUrl?: string
  /** Default: none. */
  portalOrigins?: string[]
  portal?: Partial<Config['portal']>
  exchangeTimeoutMs?: number
  /** Default: 15,000. */
  heartbeatMs?: number
  /** Default: one of a few that the process has made. */
  makeDkimKeys?: MakeDkimKeys
  webhookChanges?: WebhookChanges
  /** The migrations that this version knows. Default: all there are. */
  migrations?: Migrations
  /** Default: 5. */
  shutdownTimeoutSeconds?: number
}

const bodyLimit = 65_536
/** Seldom enough that a worker without work costs little, and often enough for what nothing wakes it for. */
const pollIntervalMs = 200
/** The key that encrypts the secrets of every test service. */
export const encryptionKey = Buffer.alloc(32, 7)

const makeDkimKeys = createDkimKeyMaker()
const dkimKeys: ReturnType<MakeDkimKeys>[] = []
let domainsWithKeys = 0

/** Other keys for each of four domains that follow one another, then the same: an RSA key takes a processor 0.1 s. */
function nextDkimKeys(): ReturnType<MakeDkimKeys> {
  const index = domainsWithKeys++ % 4
  dkimKeys[index] ??= makeDkimKeys('')
  return dkimKeys[index]
}

/** A running service on a database of its own, with accounts and keys. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  await using starting = new AsyncDisposableStack()
  const { time, beside, expectErrors = false } = options
  const { database, accountId, keys } = beside ?? starting.use(await createWorld(options))
  const url = (await options.connectionString?.(database.connectionString)) ?? database.connectionString
  const logged: string[] = []
  const app = await startApp(configOf(options, url), {
    logger: createLogger({ level: 'warn', destination: { write: (line) => void logged.push(line) } }),
    pollIntervalMs,
    ...(time && { clock: time.clock, queueClock: time.queueClock, sessionOptions: time.sessionOptions }),
    ...(options.migrations && { migrations: options.migrations }),
    makeDkimKeys: options.makeDkimKeys ?? nextDkimKeys,
    ...(options.webhookChanges && { webhookChanges: options.webhookChanges }),
    ...(options.heartbeatMs !== undefined && { heartbeatMs: options.heartbeatMs }),
    ...(options.exchangeTimeoutMs !== undefined && { exchangeTimeoutMs: options.exchangeTimeoutMs }),
  })
  starting.use(app)
  const client = createTestClient({ url: app.url, key: keys.live })
  starting.use(client)
  const running = starting.move()

  async function stop(): Promise<void> {
    await running.disposeAsync()
    const errors = logged.filter((line) => ['error', 'fatal'].includes(JSON.parse(line).level))
    if (errors.length > 0 && !expectErrors) throw new Error(`the service logged errors:\n${errors.join('')}`)
  }

  const clock = time?.clock ?? systemClock
  return { url: app.url, app, database, clock, accountId, keys, client, logged, stop, [Symbol.asyncDispose]: stop }
}

/** The settings a test service runs with. */
export function configOf({ roles, webhooks, mail, ...options }: TestServiceOptions, url: string): Config {
  return {
    http: {
      host: '127.0.0.1',
      port: 0,
      publicUrl: options.publicUrl ?? null,
      maxBodyBytes: options.maxBodyBytes ?? bodyLimit,
      maxEmailBodyBytes: options.maxEmailBodyBytes ?? bodyLimit,
      trustProxy: options.trustProxy ?? 0,
      authFailuresPerMinute: options.authFailuresPerMinute ?? 1_000_000,
      portalOrigins: options.portalOrigins ?? [],
    },
    portal: { accentColor: null, colorScheme: 'auto', ...options.portal },
    database: { kind: 'external', url, poolSize: 10 },
    encryptionKey,
    roles: { api: true, worker: true, ...roles },
    rateLimits: { scale: 1_000_000, one: 1 },
    requestLogs: options.requestLogs ?? true,
    retentionMs: 30 * 24 * 3_600_000,
    identityProvider: options.identityProvider ?? null,
    statisticsMs: 400 * 24 * 3_600_000,
    webhooks: { allowPrivateNetworks: true, allowHttp: true, maxPerAccount: 1_000, maxPerCustomer: 20, ...webhooks },
    delivery: options.delivery ?? { places: 64, endpointMax: 16 },
    mail: {
      transport: 'capture',
      relay: null,
      concurrency: 10,
      connectionsPerHost: 5,
      messagesPerConnection: 100,
      allowPrivateNetworks: false,
      hostname: 'mail.postern.test',
      spfInclude: null,
      dnsServers: ['127.0.0.1:9'],
      accountEmailFrom: null,
      capturePort: 0,
      inbound: null,
      ...mail,
    },
    logLevel: 'warn',
    shutdownTimeoutSeconds: options.shutdownTimeoutSeconds ?? 5,
    tracing: options.tracing ?? null,
  }
}

type World = AsyncDisposable & Pick<TestService, 'database' | 'accountId' | 'keys'>

async function createWorld({ time, expectErrors }: TestServiceOptions): Promise<World> {
  const database = await createTestDatabase({
    ...(time && { sessionOptions: time.sessionOptions }),
    ...(expectErrors && { onError: () => undefined }),
  })
  const made = await createKeys(database, time?.clock ?? systemClock)
  return { database, ...made, [Symbol.asyncDispose]: () => database.drop() }
}

async function createKeys({ db }: TestDatabase, clock: Clock): Promise<Pick<World, 'accountId' | 'keys'>> {
  const { accounts, apiKeys } = createKeyServices(clock)
  const [ours, theirs, limited] = await Promise.all([
    accounts.create(db, { name: 'Ours', plan: 'scale' }),
    accounts.create(db, { name: 'Theirs', plan: 'scale' }),
    accounts.create(db, { name: 'Limited', plan: 'one' }),
  ])
  const make = (key: Partial<NewKey>) =>
    apiKeys.create(db, { accountId: ours.id, mode: 'live', permissions: ['full_access'], name: 'A key', ...key })
  const secretOf = async (key: Partial<NewKey> = {}) => (await make(key)).key
  const revoked = await make({})
  await apiKeys.revoke(db, revoked.id)
  const keys: TestKeys = {
    live: await secretOf(),
    test: await secretOf({ mode: 'test' }),
    read: await secretOf({ permissions: ['read_access'] }),
    revoked: revoked.key,
    other: await secretOf({ accountId: theirs.id }),
    limited: await secretOf({ accountId: limited.id }),
  }
  return { accountId: ours.id, keys }
}
