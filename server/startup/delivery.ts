import { keysChannel } from '../api-keys/service.ts'
import { deleteUnconfirmed } from '../audiences/unconfirmed.ts'
import { startBackground } from '../background/start.ts'
import { runDueChecks } from '../domains/check-domain.ts'
import { indexOlderEmails } from '../emails/older-emails.ts'
import { deleteExpired } from '../http/retention.ts'
import { deleteEndedImports } from '../imports/retention.ts'
import { deleteEndedPortalSessions } from '../portal-sessions/retention.ts'
import { clearDeletedProperties } from '../subscribers/property-service.ts'
import { clearDeletedTopics } from '../topics/service.ts'
import { deleteEndedSessions } from '../users/sessions.ts'
import { deleteOldSignInFailures } from '../users/sign-in-delays.ts'
import { createExchange } from '../webhook-delivery/attempt/exchange.ts'
import { createKeyring } from '../webhook-delivery/attempt/keyring.ts'
import { createDeliveryMetrics } from '../webhook-delivery/metrics.ts'
import type { Context } from './context.ts'

export type Delivery = Awaited<ReturnType<typeof startDelivery>>

/** Background cleanups of the rooms: of expired data, and of the data of deleted objects. */
const expiring = [
  deleteExpired,
  deleteEndedSessions,
  deleteOldSignInFailures,
  deleteEndedPortalSessions,
  clearDeletedProperties,
  clearDeletedTopics,
  deleteEndedImports,
]

/** Starts the outbox, the delivery of webhooks and the other work behind the requests. */
export async function startDelivery(context: Context) {
  await using starting = new AsyncDisposableStack()
  const { config, clock, logger, tracer, registry, database, db, workerDb, queue, secretBox, webhookChanges } = context
  const { domainChecks, later } = context
  const exchange = createExchange({
    policy: config.webhooks,
    clock,
    connectionsPerOrigin: config.delivery.places,
    timeoutMs: context.options.exchangeTimeoutMs,
  })
  starting.defer(() => exchange.close())
  const attempts = {
    queue,
    exchange,
    keyring: createKeyring(secretBox),
    webhookChanges,
    clock,
    tracer,
    retentionMs: config.retentionMs,
  }
  const background = starting.use(
    await startBackground({
      ...attempts,
      ...config.delivery,
      ...createDeliveryMetrics(registry, { db, queue }),
      works: config.roles.worker,
      db: workerDb,
      connectionString: database.connectionString,
      logger,
      pollIntervalMs: context.pollIntervalMs,
      statisticsMs: config.statisticsMs,
      wakeMail: (lane) => later.mail?.wake(lane),
      on: { [keysChannel]: context.keyCache.tellNotified },
      checkDomains: (means) => runDueChecks({ ...domainChecks, db: workerDb, clock, logger, ...means }),
      deleteExpiredOfHttp: () => Promise.all(expiring.map((run) => run({ db: workerDb, clock }))),
      deleteUnconfirmed: ({ outbox }) => deleteUnconfirmed({ db: workerDb, clock, outbox }),
      indexOlderEmails: () => indexOlderEmails(workerDb),
    }),
  )
  const running = starting.move()
  return {
    /** The dependencies of attempts at webhooks. */
    attempts,
    background,
    outbox: background.outbox,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
