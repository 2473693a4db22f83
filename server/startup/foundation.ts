import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { encryptionKeyOf, openSecretBox } from '../config/encryption-key.ts'
import { type Db, isAnswering } from '../database/connection.ts'
import { type Migrations, pendingMigrations } from '../database/migrate.ts'
import type { OpenDatabase } from '../database/open.ts'
import { prepareDatabase, startDatabase } from '../database/start.ts'
import { continueFromNewestEvent } from '../events/id-continuity.ts'
import { type Clock, systemClock } from '../lib/clock.ts'
import { createLogger } from '../observability/logging.ts'
import { createProcessFaultMetrics } from '../observability/process-fault-metrics.ts'
import { noProcessFaults, type ProcessFaults } from '../observability/process-faults.ts'
import { createRegistry } from '../observability/registry.ts'
import { startTracer } from '../observability/tracing/start-tracer.ts'
import { type Queue, type QueueOptions, startQueue } from '../queue/queue.ts'

export type FoundationOptions = {
  clock?: Clock
  queueClock?: NonNullable<QueueOptions['clock']>
  sessionOptions?: string
  /** The database, if it is open already. It is closed with the rest. Default: the one of the settings is opened. */
  opened?: OpenDatabase
  logger?: Logger
  /** Counters of faults of the process. Default: none. */
  faults?: Pick<ProcessFaults, 'rejections'>
  /** The migrations of this version. Default: all. */
  migrations?: Migrations
}

/** The dependencies of all rooms. */
export type Foundation = Awaited<ReturnType<typeof startFoundation>>

/**
 * Starts what all rooms need: logs, tracing, metrics, the database with its tables, the queue and the encryption key.
 */
export async function startFoundation(config: Config, options: FoundationOptions) {
  await using starting = new AsyncDisposableStack()
  const { clock = systemClock, logger = createLogger({ level: config.logLevel }), sessionOptions } = options

  const session = sessionOptions === undefined ? {} : { sessionOptions }
  const location = config.database
  const database = starting.use(await startDatabase({ location, opened: options.opened, ...session, logger }))
  const tracer = await startTracer(config.tracing, logger)
  starting.defer(() => tracer.stop())
  const registry = createRegistry()
  createProcessFaultMetrics(registry, options.faults ?? noProcessFaults)

  const { connectionString } = database
  const db: Db = database.pool('postern', config.database.poolSize)
  const preparing = prepare()
  // A migration that fails leaves the database as it was: so the queue comes after it. A new database has nothing to
  // leave, and both need no tables of each other.
  if (!database.isNew) await preparing
  const both = [openQueue(), preparing] as const
  await Promise.allSettled(both)
  const [queue] = await Promise.all(both)

  const key = await encryptionKeyOf(config)
  const secretBox = await openSecretBox(db, key)
  const running = starting.move()
  return {
    clock,
    logger,
    tracer,
    registry,
    database,
    db,
    /** Checks of readiness. */
    checks: {
      database: async () => isAnswering(db),
      migrations: async () => (await pendingMigrations(db, options.migrations)).length === 0,
    },
    queue,
    key,
    secretBox,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }

  async function prepare(): Promise<void> {
    await prepareDatabase(db, { location, connectionString, migrations: options.migrations, logger })
    await continueFromNewestEvent(db, { clock, logger })
  }

  async function openQueue(): Promise<Queue> {
    const queue = await startQueue({
      connectionString,
      ...session,
      works: config.roles.worker,
      onError: (error) => logger.error({ err: error }, 'the queue failed'),
      ...(options.queueClock && { clock: options.queueClock }),
    })
    starting.defer(() => queue.stop())
    return queue
  }
}
