import type { FirstAccount } from './api-keys/service.ts'
import type { Config } from './config/config.ts'
import { inTransaction } from './database/connection.ts'
import { warnAtStart } from './email-delivery/start-warnings.ts'
import { startRegister } from './processes/register.ts'
import { startApi } from './startup/api.ts'
import { type AppOptions, createContext } from './startup/context.ts'
import { startDelivery } from './startup/delivery.ts'
import { createFeatures, version } from './startup/features.ts'
import { startFoundation } from './startup/foundation.ts'
import { shutDown } from './startup/shutdown.ts'
import { startWorkers } from './startup/workers.ts'

export type { AppOptions } from './startup/context.ts'

/** The running service. */
export type App = AsyncDisposable & {
  /** The address of the HTTP server. */
  url: string
  /** The port that takes notifications about email by SMTP. Null: none. */
  inboundPort: number | null
  /**
   * Creates an account with its keys and the link for its first user if there is none. Call it once everything runs,
   * since these are shown only then. Null: there is an account already, or this process has no API.
   */
  ensureFirstAccount(): Promise<(FirstAccount & { userLink: string }) | null>
  /** Resolves to true when there is a user who can sign in to the dashboard. */
  hasUsers(): Promise<boolean>
  /** Rejects with an OperatorError when the service cannot continue: its embedded database has ended. */
  failed: Promise<never>
  /**
   * Stops the service: takes no more work, finishes what is in flight or hands it back, and closes everything. May be
   * called again. Rejects with an OperatorError when the database no longer responds: its connections then stay open,
   * and the process must be ended.
   */
  stop(): Promise<void>
}

/** The plan of the account created at the first start. */
const firstPlan = 'scale'

/**
 * Starts the service, part by part; each part puts together its rooms. Parts are stopped in reverse order, also when a
 * later part fails to start.
 *
 * Throws OperatorError for problems that the operator can fix.
 */
export async function startApp(config: Config, options: AppOptions = {}): Promise<App> {
  await using starting = new AsyncDisposableStack()
  const context = createContext(starting.use(await startFoundation(config, options)), config, options)
  const delivery = starting.use(await startDelivery(context))
  const features = starting.use(createFeatures(context, delivery))
  const api = starting.use(await startApi(context, delivery, features))
  const workers = starting.use(await startWorkers(context, delivery, features))
  const { db, workerDb, logger, tracer, database } = context
  const register = startRegister({ db: workerDb, logger, roles: config.roles, version })
  starting.defer(() => register.stop())
  warnAtStart(config, logger)
  const running = starting.move()

  const { operator } = features.services.users
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= shutDown({
      deadlineMs: config.shutdownTimeoutSeconds * 1000,
      parts: [...api.stopping, delivery.background.stop, ...workers.stopping],
      closeRest: () => Promise.all([tracer.stop(), running.disposeAsync()]),
    })
    return stopped
  }
  return {
    url: api.url,
    inboundPort: workers.inboundPort,
    ensureFirstAccount: () =>
      inTransaction(db, async (trx) => {
        const first = config.roles.api ? await features.apiKeys.ensureFirstAccount(trx, { plan: firstPlan }) : null
        return first && { ...first, userLink: await operator.inviteFirst(trx, first.account.id) }
      }),
    hasUsers: () => operator.hasUsers(db),
    failed: database.failed,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
