import type { Db } from '../../../server/database/connection.ts'
import { type Env, type ServiceProcess, startService } from '../../main/service-process.ts'
import { encryptionKey } from '../../support/service.ts'
import { claimsOf } from './claims.ts'
import { verdict } from './evidence.ts'
import { createLedger, type Ledger } from './ledger.ts'
import { type Load, startLoad } from './load.ts'
import { type Recorder, startRecorder } from './recorder.ts'
import { subscribe } from './subscribe.ts'

/** The service as a process of its own, with webhooks that lead to a recorder, and a ledger. */
export type Stage = AsyncDisposable & {
  db: Db
  recorder: Recorder
  ledger: Ledger
  /** The process that runs at present. */
  readonly service: ServiceProcess
  /** Starts another process in place of the one that has ended. */
  restart(env?: Env): Promise<void>
  /** Kills the process at once, and notes what it had in hand. */
  kill(): Promise<void>
  /** Notes what a process that has died had in hand. */
  noteLostClaims(): Promise<void>
  startLoad(): Load
  verdict: () => Promise<string[]>
}

export type StageOptions = {
  /** How the service and its tests reach the database. */
  connectionString: string
  /** Asked by the test itself. */
  db: Db
  env?: Env
  /** Default: 2. */
  webhooks?: number
}

const unlimited = 'scale=1000000000'

export async function setStage({ connectionString, db, env = {}, webhooks = 2 }: StageOptions): Promise<Stage> {
  await using starting = new AsyncDisposableStack()
  const recorder = starting.use(await startRecorder())
  const ledger = createLedger()
  let service = await start({})
  // The one that runs when the end has come.
  starting.defer(() => service[Symbol.asyncDispose]())
  const [key] = /postern_live_\w+/.exec(service.greeting) ?? []
  if (key === undefined) throw new Error(`the service showed no key: ${service.greeting}`)
  await subscribe({ url: service.url, key, recorder, count: webhooks })
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

  async function noteLostClaims(): Promise<void> {
    ledger.lose(await claimsOf(db))
  }

  const running = starting.move()
  return {
    db,
    recorder,
    ledger,
    get service() {
      return service
    },
    async restart(more = {}) {
      service = await start(more)
    },
    async kill() {
      service.child.kill('SIGKILL')
      await service.exit
      await noteLostClaims()
    },
    noteLostClaims,
    startLoad: () => startLoad({ ledger, url: () => service.url, key, db, accountId }),
    verdict: () => verdict({ db, ledger, recorder }),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
