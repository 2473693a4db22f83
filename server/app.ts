import type { Logger } from 'pino'
import { publishedDocument } from '../openapi/published.ts'
import { createKeyCache } from './api-keys/cache.ts'
import { createApiKeyService, type FirstAccount, keysChannel } from './api-keys/service.ts'
import { createContactService } from './audiences/contact-service.ts'
import { createAudienceService } from './audiences/service.ts'
import { startWakeUps } from './background/wake-ups.ts'
import { silenceLimitMs, startWorkers } from './background/workers.ts'
import { startInboundListener } from './bounces/start.ts'
import type { Config } from './config/config.ts'
import { encryptionKeyOf, openSecretBox } from './config/encryption-key.ts'
import { connect, type Db, isAnswering } from './database/connection.ts'
import { assertDatabase } from './database/connection-errors.ts'
import { startEmbeddedDatabase } from './database/embedded/start.ts'
import { warnOfMissingIndexes } from './database/large-indexes.ts'
import { type Migrations, migrateToLatest, pendingMigrations } from './database/migrate.ts'
import { createDeliveryService } from './deliveries/service.ts'
import { runDueChecks } from './domains/checking.ts'
import type { MakeDkimKeys } from './domains/keys.ts'
import { createDomainService, findSendingDomain } from './domains/service.ts'
import { createMailMetrics } from './email-delivery/metrics.ts'
import { startMail } from './email-delivery/start.ts'
import { faultOfLinksIn, warnAtStart } from './email-delivery/start-warnings.ts'
import type { MailWorker } from './email-delivery/worker.ts'
import { createEmailService } from './emails/service.ts'
import { continueFromNewestEvent } from './events/continuity.ts'
import { createEventService } from './events/service.ts'
import { type ApiOptions, createHttpApp } from './http/app.ts'
import { createAuthFailures } from './http/auth-failures.ts'
import { authenticate, requirePermission } from './http/authenticate.ts'
import { createEndpoint } from './http/idempotency.ts'
import { deleteExpiredIdempotencyKeys } from './http/idempotency-keys.ts'
import { createRateLimiter, limitRate } from './http/rate-limit.ts'
import { listen } from './http/server.ts'
import { type Clock, systemClock } from './lib/clock.ts'
import { addressKey } from './message/address.ts'
import { createMailTokens } from './message/tokens.ts'
import { createLogger } from './observability/logging.ts'
import { createDeliveryMetrics, createRegistry } from './observability/metrics.ts'
import { createProcessFaultMetrics, noProcessFaults, type ProcessFaults } from './observability/process-faults.ts'
import { traceEvents } from './observability/tracing/events.ts'
import { startTracer } from './observability/tracing/start-tracer.ts'
import { createOutbox } from './outbox/append.ts'
import { type QueueOptions, startQueue } from './queue/queue.ts'
import { OperatorError } from './shared/errors.ts'
import type { SmtpListener } from './smtp-listener/listener.ts'
import { createCapturedMessageService, createInboundMessageService } from './stored-messages/service.ts'
import { unsubscribeByLink } from './subscribers/one-click.ts'
import { createSubscriberService } from './subscribers/service.ts'
import { createSuppressionService } from './suppressions/service.ts'
import { startTracking, type Tracking } from './tracking/start.ts'
import { createExchange, resolverOf } from './webhook-delivery/attempt/exchange.ts'
import { createKeyring } from './webhook-delivery/attempt/keyring.ts'
import { startReportingRefused } from './webhook-delivery/refused-webhooks.ts'
import { createWebhookChanges, type WebhookChanges, webhookChannel } from './webhook-delivery/webhook-changes.ts'
import { createWebhookService } from './webhooks/service.ts'

/** The running service. */
export type App = AsyncDisposable & {
  /** Where it listens. */
  url: string
  /** Where it takes notifications about email by SMTP; null: nowhere. */
  inboundPort: number | null
  /**
   * Makes an account with its keys if there is none yet. Called once everything runs, since the keys
   * are shown then and never again. Null where there is one, and in a process that is no API.
   */
  ensureFirstAccount(): Promise<FirstAccount | null>
  /** Rejects, with an OperatorError, when the service cannot go on: its embedded database has ended. */
  failed: Promise<never>
  /**
   * Takes no more work, finishes what is in flight or hands it back, and closes everything. Safe to
   * call again. Rejects, with an OperatorError, when the database does not answer any more: then its
   * connections stay open, and the process must be ended.
   */
  stop(): Promise<void>
}

/** What a test may take into its own hands. */
export type AppOptions = {
  clock?: Clock
  queueClock?: NonNullable<QueueOptions['clock']>
  sessionOptions?: string
  logger?: Logger
  /** Milliseconds between polls of the workers. Default 1,000. */
  pollIntervalMs?: number
  /** Milliseconds for an exchange with an endpoint. Default 30,000. */
  exchangeTimeoutMs?: number
  /** What went wrong in the process, to be counted. Default: nothing. */
  faults?: Pick<ProcessFaults, 'rejections'>
  /** What this version knows. Default: all there are. */
  migrations?: Migrations
  /** Makes the keys of sending domains. Default: as `createDkimKeyMaker` does. */
  makeDkimKeys?: MakeDkimKeys
  /** What it knows of changed webhooks, to be watched. Default: its own. */
  webhookChanges?: WebhookChanges
}

/** The plan of the account made at the first start. */
const firstPlan = 'scale'
/** Woken when another process has appended to the outbox. */
const outboxChannel = 'postern_outbox'
/** Woken when another process has put emails into the queue. */
const emailsChannel = 'postern_emails'

/**
 * Builds the service from its parts and starts it; the one place that knows them all. What was
 * started is stopped in the reverse order, also when a later part fails to start.
 *
 * Throws OperatorError for what the operator can mend.
 */
export async function startApp(config: Config, options: AppOptions = {}): Promise<App> {
  await using starting = new AsyncDisposableStack()
  const clock = options.clock ?? systemClock
  const logger = options.logger ?? createLogger({ level: config.logLevel })
  const reportIn = (part: string) => (error: unknown) => logger.error({ err: error }, `${part} failed`)

  const tracer = await startTracer(config.tracing, logger)
  starting.defer(() => tracer.stop())

  const failure = Promise.withResolvers<never>()
  // Whoever waits for it is told; nobody has to.
  failure.promise.catch(() => undefined)
  const connectionString = await openDatabase()
  const connecting = { connectionString, ...(options.sessionOptions && { sessionOptions: options.sessionOptions }) }
  // Two pools: a flood of requests must not keep the workers from settling, nor the other way round.
  const db = pool('postern', config.database.poolSize)
  const workerDb = config.roles.worker ? pool('postern workers', workerConnections) : db
  if (config.database.kind === 'external') await assertDatabase(db, connectionString)
  const migrated = await migrateToLatest(db, options.migrations)
  if (migrated.length > 0) logger.info({ migrated }, 'migrated the database')
  await warnOfMissingIndexes(db, logger)
  await continueFromNewestEvent(db, { clock, logger })

  const queue = await startQueue({
    ...connecting,
    works: config.roles.worker,
    onError: reportIn('the queue'),
    ...(options.queueClock === undefined ? {} : { clock: options.queueClock }),
  })
  starting.defer(() => queue.stop())

  const apiKeys = createApiKeyService({ clock })
  const key = await encryptionKeyOf(config)
  const secretBox = await openSecretBox(db, key)
  const mailTokens = createMailTokens(key)
  const keyring = createKeyring(secretBox)
  const { maxPerAccount, ...addressPolicy } = config.webhooks
  const exchange = createExchange({
    policy: addressPolicy,
    clock,
    connectionsPerOrigin: config.delivery.places,
    ...(options.exchangeTimeoutMs === undefined ? {} : { timeoutMs: options.exchangeTimeoutMs }),
  })
  starting.defer(() => exchange.close())

  const capturing = config.mail.transport === 'capture'
  const linksFault = faultOfLinksIn(config)
  const domainChecks = {
    sender: { hostname: config.mail.hostname, spfInclude: config.mail.spfInclude },
    dns: { servers: config.mail.dnsServers },
    isCaptured: capturing,
  }
  let mail: MailWorker | null = null
  const registry = createRegistry()
  createProcessFaultMetrics(registry, options.faults ?? noProcessFaults)
  const metrics = { ...createDeliveryMetrics(registry, { db, queue }), ...createMailMetrics(registry) }
  const webhookChanges = options.webhookChanges ?? createWebhookChanges()
  const workers = config.roles.worker
    ? await startWorkers({
        db: workerDb,
        queue,
        exchange,
        keyring,
        clock,
        logger,
        ...config.delivery,
        retentionMs: config.retentionMs,
        checkDomains: (means) => runDueChecks({ ...domainChecks, db: workerDb, clock, logger, ...means }),
        deleteExpiredAnswers: () => deleteExpiredIdempotencyKeys({ db: workerDb, clock }),
        ...metrics,
        tracer,
        webhookChanges,
        ...(options.pollIntervalMs === undefined ? {} : { pollIntervalMs: options.pollIntervalMs }),
      })
    : null
  if (workers !== null) starting.defer(() => workers.stop(0))

  const keyCache = createKeyCache({ clock })
  const wakeUps = startWakeUps({
    connectionString,
    onError: reportIn('the connection for wake-ups'),
    hearing: webhookChanges,
    on: {
      [outboxChannel]: () => workers?.wakeFanOut(),
      [emailsChannel]: () => mail?.wake(),
      [webhookChannel]: webhookChanges.tellNotified,
      [keysChannel]: (keyId) => (keyId === '' ? keyCache.clear() : keyCache.invalidate(keyId)),
    },
  })
  starting.defer(() => wakeUps.stop())

  const outbox = createOutbox({
    clock,
    wake: () => (workers === null ? wakeUps.notify(outboxChannel) : workers.wakeFanOut()),
    trace: (events) => traceEvents(tracer, events),
    ...(workers !== null && { leasing: workers.leasing, tracer }),
  })
  const deliveries = createDeliveryService({
    queue,
    exchange,
    keyring,
    clock,
    retentionMs: config.retentionMs,
    wake: (flow) => workers?.wakeDelivery(flow),
    tracer,
    webhookChanges,
  })
  const tracking = config.roles.api ? startLinks() : null
  const http = await listen({
    app: createHttpApp({
      api: config.roles.api ? api() : null,
      registry,
      checks: {
        database: async () => isAnswering(db),
        migrations: async () => (await pendingMigrations(db, options.migrations)).length === 0,
        ...(workers === null ? {} : { workers: async () => workers.alive() && (mail?.idleMs() ?? 0) < silenceLimitMs }),
      },
      logger,
      trustProxy: config.http.trustProxy,
      ...(tracking !== null && { mailLinks: tracking.links }),
      tracer,
    }),
    host: config.http.host,
    port: config.http.port,
    logger,
  })
  starting.defer(() => http.close(0))
  // Last, since its messages say where this service is reached.
  if (config.roles.worker) {
    mail = await startSending()
    starting.defer(() => mail?.stop(0))
  }

  const inbound = config.roles.worker ? await startInbound() : null
  if (config.roles.worker) {
    const means = { db: workerDb, policy: addressPolicy, resolve: resolverOf(addressPolicy), logger }
    starting.defer(startReportingRefused({ ...means, onError: reportIn('looking for refused webhooks') }))
  }

  warnAtStart(config, logger)

  const running = starting.move()
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= stopAll()
    return stopped
  }
  return {
    url: http.url,
    inboundPort: inbound?.port ?? null,
    ensureFirstAccount: async () => (config.roles.api ? apiKeys.ensureFirstAccount(db, { plan: firstPlan }) : null),
    failed: failure.promise,
    stop,
    [Symbol.asyncDispose]: stop,
  }

  function api(): ApiOptions {
    const contacts = createContactService({ clock, outbox })
    const suppressions = createSuppressionService({ clock })
    return {
      services: {
        webhooks: createWebhookService({ clock, secretBox, deliveries, addressPolicy, maxPerAccount, webhookChanges }),
        deliveries,
        events: createEventService(),
        subscribers: createSubscriberService({ clock, outbox }),
        audiences: createAudienceService({ clock, outbox }),
        contacts,
        emails: createEmailService({
          clock,
          outbox,
          queue: queue.emails,
          wake: () => (config.roles.worker ? mail?.wake() : wakeUps.notify(emailsChannel)),
          traceparent: () => tracer.current().traceparent,
          isCaptured: capturing,
          faultOfLinks: linksFault,
          findSendingDomain,
          findSuppressed: suppressions.find,
          findUnsubscribed: contacts.unsubscribed,
        }),
        suppressions,
        capturedMessages: createCapturedMessageService(),
        inboundMessages: createInboundMessageService(),
        domains: createDomainService({
          ...domainChecks,
          clock,
          outbox,
          secretBox,
          ...(options.makeDkimKeys && { makeKeys: options.makeDkimKeys }),
        }),
      },
      endpoint: createEndpoint({ db, clock, secretBox }),
      gates: [
        authenticate({
          db,
          apiKeys,
          cache: keyCache,
          failures: createAuthFailures({ clock, perMinute: config.http.authFailuresPerMinute }),
        }),
        limitRate({ limiter: createRateLimiter({ db, clock, limits: config.rateLimits }), clock }),
        requirePermission,
      ],
      capturing,
      document: publishedDocument(config.http.publicUrl === null ? {} : { serverUrl: config.http.publicUrl }),
      maxBodyBytes: config.http.maxBodyBytes,
      maxEmailBodyBytes: config.http.maxEmailBodyBytes,
    }
  }

  async function stopAll(): Promise<void> {
    const deadlineMs = config.shutdownTimeoutSeconds * 1000
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      late.reject(
        new OperatorError('the database does not answer; ended without it, and what was not settled is made again'),
      )
    }, deadlineMs + closingMs)
    await Promise.race([closeAll(deadlineMs), late.promise]).finally(() => clearTimeout(timer))
  }

  async function closeAll(deadlineMs: number): Promise<void> {
    // Side by side, since each may take until the deadline; the rest has nothing left to wait for.
    try {
      await Promise.all([
        http.close(deadlineMs),
        workers?.stop(deadlineMs),
        mail?.stop(deadlineMs),
        inbound?.close(deadlineMs),
      ])
    } finally {
      await Promise.all([tracer.stop(), running.disposeAsync()])
    }
  }

  function startLinks(): Tracking {
    const means = { clock, subscribers: createSubscriberService({ clock, outbox }) }
    const started = startTracking({
      db,
      clock,
      outbox,
      logger,
      tokens: mailTokens,
      onFact: metrics.onFact,
      unsubscribe: (from) => unsubscribeByLink(db, means, from),
      ...(options.pollIntervalMs === undefined ? {} : { pollIntervalMs: options.pollIntervalMs }),
    })
    starting.defer(() => started.stop())
    return started
  }

  function startSending(): Promise<MailWorker> {
    return startMail({
      db: pool('postern mail', mailConnections),
      queue,
      clock,
      logger,
      outbox,
      secretBox,
      metrics,
      tokens: mailTokens,
      key,
      config: config.mail,
      successNotifications: config.mail.inbound !== null,
      faultOfLinks: linksFault,
      publicUrl: () => config.http.publicUrl ?? http.url,
      ...(options.pollIntervalMs === undefined ? {} : { pollIntervalMs: options.pollIntervalMs }),
    })
  }

  async function startInbound(): Promise<SmtpListener | null> {
    const { inbound: address, hostname } = config.mail
    if (address === null) return null
    const means = { db: workerDb, clock, logger, outbox, registry, tokens: mailTokens, keyOf: addressKey }
    const listener = await startInboundListener({ ...address, ...means, hostname, onFact: metrics.onFact })
    starting.defer(() => listener.close(0))
    return listener
  }

  async function openDatabase(): Promise<string> {
    if (config.database.kind === 'external') return config.database.url
    const embedded = await startEmbeddedDatabase({
      dataDir: config.database.dataDir,
      onUnexpectedExit: failure.reject,
    })
    starting.use(embedded)
    return embedded.connectionString
  }

  function pool(name: string, max: number): Db {
    const made = connect({ ...connecting, applicationName: name, max, onError: reportIn('a database connection') })
    starting.defer(() => made.destroy())
    return made
  }
}

/** What the sending of email has for itself: its loops, and what the sink of the capture keeps. */
const mailConnections = 6
/** What closing takes at most beyond the deadline, with a database that answers. Milliseconds. */
const closingMs = 4_500

/** What the loops of the workers share: each has one statement at a time, and they are seldom all at it. */
const workerConnections = 6
