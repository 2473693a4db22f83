import type { EventTypeName } from '../../../contract/event-types.ts'
import type { Db } from '../../../server/database/connection.ts'
import { type Env, type ServiceProcess, startService } from '../../main/service-process.ts'
import { encryptionKey } from '../../support/service.ts'
import { miscounted } from '../../support/statistics.ts'
import { claimsOf } from './claims.ts'
import { verdict } from './evidence.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { addingSubscribers, type Load, type LoadOptions, startLoad } from './load.ts'
import { type Recorder, startRecorder } from './recorder.ts'
import { connectTester } from './sessions.ts'
import { subscribe } from './subscribe.ts'

/** The service as a process of its own, with webhooks that lead to a recorder, and a ledger. */
export type Stage = AsyncDisposable & {
  /** For the test itself. */
  db: Db
  connectionString: string
  recorder: Recorder
  ledger: Ledger
  /** May do everything, with live data. */
  key: string
  /** The process that runs at present. */
  readonly service: ServiceProcess
  /** Starts another process in place of the one that has ended. */
  restart(env?: Env): Promise<void>
  /** Starts a process beside `service`. The caller ends it. */
  startBeside(env?: Env): Promise<ServiceProcess>
  /** Kills the process at once, and notes what it had in hand. */
  kill(): Promise<void>
  /** Default: four writers who take their time. */
  startLoad(options?: Pick<LoadOptions, 'writers' | 'paceMs' | 'onAcknowledged'>): Load
  /** Waits for the recovery and answers what was lost, is wrong or miscounted. See `verdict` and `miscounted`. */
  verdict(options?: { patienceMs?: number }): Promise<string[]>
}

export type StageOptions = {
  connectionString: string
  /** Settings of the service. */
  env?: Env
  /** Default: 2. */
  webhooks?: number
  /** The event types of the webhooks. Default: `subscriber.added`. */
  events?: readonly EventTypeName[]
}

const unlimited = 'scale=1000000000'

export async function setStage(options: StageOptions): Promise<Stage> {
  const { connectionString, env = {}, webhooks = 2, events } = options
  await using starting = new AsyncDisposableStack()
  const db = connectTester(connectionString)
  starting.defer(() => db.destroy())
  const recorder = starting.use(await startRecorder())
  const ledger = createLedger()
  let service = await start({})
  // The one that runs when the end has come.
  starting.defer(() => service[Symbol.asyncDispose]())
  const [key] = /postern_live_\w+/.exec(service.greeting) ?? []
  if (key === undefined) throw new Error(`the service showed no key: ${service.greeting}`)
  await subscribe({ url: service.url, key, recorder, count: webhooks, ...(events && { events }) })
  const { account_id: accountId } = await db.selectFrom('webhooks').select('account_id').executeTakeFirstOrThrow()

  function start(more: Env): Promise<ServiceProcess> {
    return startService({
      DATABASE_URL: connectionString,
      ENCRYPTION_KEY: encryptionKey.toString('base64'),
      RATE_LIMITS: unlimited,
      WEBHOOK_ALLOW_HTTP: 'true',
      WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true',
      ...env,
      ...more,
    })
  }

  const running = starting.move()
  return {
    db,
    connectionString,
    recorder,
    ledger,
    key,
    get service() {
      return service
    },
    async restart(more = {}) {
      service = await start(more)
    },
    startBeside: (more = {}) => start(more),
    async kill() {
      service.child.kill('SIGKILL')
      await service.exit
      ledger.lose(await claimsOf(db))
    },
    startLoad: (options) =>
      startLoad({ ledger, url: () => service.url, key, ...addingSubscribers({ db, accountId }), ...options }),
    verdict: async (options) => [...(await verdict({ db, ledger, recorder }, options)), ...(await miscounted(db))],
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
