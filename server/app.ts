import { publishedDocument } from '../openapi/published.ts'
import { createAccountService } from './accounts/service.ts'
import { createKeyCache } from './api-keys/cache.ts'
import { createApiKeyService, type FirstAccount, keysChannel } from './api-keys/service.ts'
import { startWakeUps } from './background/wake-ups.ts'
import { silenceLimitMs, startWorkers } from './background/workers.ts'
import { startInboundListener } from './bounces/start.ts'
import type { Config } from './config/config.ts'
import { isAnswering } from './database/connection.ts'
import { pendingMigrations } from './database/migrate.ts'
import { createDeliveryService } from './deliveries/service.ts'
import { runDueChecks } from './domains/check-domain.ts'
import type { MakeDkimKeys } from './domains/generate-keys.ts'
import { createMailMetrics } from './email-delivery/metrics.ts'
import { startMail } from './email-delivery/start.ts'
import { faultOfLinksIn, warnAtStart } from './email-delivery/start-warnings.ts'
import type { MailWorker } from './email-delivery/worker.ts'
import { createLoneEvents } from './fan-out/lone-events.ts'
import { type FoundationOptions, startFoundation } from './foundation.ts'
import { deleteExpired } from './http/retention.ts'
import { startHttp } from './http/start.ts'
import { addressKey } from './message/address.ts'
import { createMailTokens } from './message/mail-tokens.ts'
import { traceEvents } from './observability/tracing/events.ts'
import { createOutbox } from './outbox/append.ts'
import { shutDown } from './shutdown.ts'
import type { SmtpListener } from './smtp-listener/listener.ts'
import { unsubscribeByLink } from './subscribers/one-click.ts'
import { createSubscriberService } from './subscribers/service.ts'
import { startTracking } from './tracking/start.ts'
import { createExchange, resolverOf } from './webhook-delivery/attempt/exchange.ts'
import { createKeyring } from './webhook-delivery/attempt/keyring.ts'
import { createDeliveryMetrics } from './webhook-delivery/metrics.ts'
import { startReportingRefused } from './webhook-delivery/refused-webhooks.ts'
import { createWebhookChanges, type WebhookChanges, webhookChannel } from './webhook-delivery/webhook-changes.ts'

/** The running service. */
export type App = AsyncDisposable & {
  /** The address of the HTTP server. */
  url: string
  /** The port that takes notifications about email by SMTP. Null: none. */
  inboundPort: number | null
  /**
   * Creates an account with its keys if there is none. Call it once everything runs, since the keys are shown only
   * then. Null: there is an account already, or this process has no API.
   */
  ensureFirstAccount(): Promise<FirstAccount | null>
  /** Rejects with an OperatorError when the service cannot continue: its embedded database has ended. */
  failed: Promise<never>
  /**
   * Stops the service: takes no more work, finishes what is in flight or hands it back, and closes everything. May be
   * called again. Rejects with an OperatorError when the database no longer responds: its connections then stay open,
   * and the process must be ended.
   */
  stop(): Promise<void>
}

/** Options for tests. */
export type AppOptions = FoundationOptions & {
  /** Milliseconds between polls of the workers. Default 1,000. */
  pollIntervalMs?: number
  /** Time limit of an exchange with an endpoint. Milliseconds. Default 30,000. */
  exchangeTimeoutMs?: number
  /** Creates the keys of sending domains. Default: as `createDkimKeyMaker` does. */
  makeDkimKeys?: MakeDkimKeys
  /** Tracks changed webhooks; a test passes its own to observe it. Default: a new one. */
  webhookChanges?: WebhookChanges
}

/** The plan of the account created at the first start. */
const firstPlan = 'scale'
/** Notified when another process has appended to the outbox. */
const outboxChannel = 'postern_outbox'
/** Notified when another process has put emails into the queue. */
const emailsChannel = 'postern_emails'
/** Database connections for sending email: for its loops, and for storing captured messages. */
const mailConnections = 6
/** Database connections of the workers. Each loop runs one statement at a time, and rarely all at once. */
const workerConnections = 6

/**
 * Builds the service from its rooms and starts it. This is the only place that knows all rooms. Parts are stopped in
 * reverse order, also when a later part fails to start.
 *
 * Throws OperatorError for problems that the operator can fix.
 */
export async function startApp(config: Config, options: AppOptions = {}): Promise<App> {
  await using starting = new AsyncDisposableStack()
  const foundation = starting.use(await startFoundation(config, options))
  const { clock, logger, tracer, database, db, queue, registry, key, secretBox, reportIn } = foundation
  const { roles, retentionMs } = config
  const { publicUrl } = config.http
  const { pollIntervalMs, exchangeTimeoutMs } = options
  const polling = pollIntervalMs === undefined ? {} : { pollIntervalMs }
  // A separate pool: a flood of requests must not keep the workers from settling, or the other way round.
  const workerDb = roles.worker ? database.pool('postern workers', workerConnections) : db

  const tokens = createMailTokens(key)
  const keyring = createKeyring(secretBox)
  const accounts = createAccountService({ clock })
  const apiKeys = createApiKeyService({ clock, accounts })
  const keyCache = createKeyCache({ clock })
  const { maxPerAccount, ...addressPolicy } = config.webhooks
  const exchange = createExchange({
    policy: addressPolicy,
    clock,
    connectionsPerOrigin: config.delivery.places,
    ...(exchangeTimeoutMs === undefined ? {} : { timeoutMs: exchangeTimeoutMs }),
  })
  starting.defer(() => exchange.close())

  const metrics = { ...createDeliveryMetrics(registry, { db, queue }), ...createMailMetrics(registry) }
  const { hostname, spfInclude, dnsServers: servers, inbound: inboundAddress } = config.mail
  const isCaptured = config.mail.transport === 'capture'
  const domainChecks = { sender: { hostname, spfInclude }, dns: { servers }, isCaptured }
  const faultOfLinks = faultOfLinksIn(config)
  const webhookChanges = options.webhookChanges ?? createWebhookChanges()
  const delivering = { queue, exchange, keyring, clock, tracer, webhookChanges, retentionMs }
  let mail: MailWorker | null = null

  const workers = roles.worker
    ? await startWorkers({
        ...delivering,
        ...config.delivery,
        ...metrics,
        ...polling,
        db: workerDb,
        logger,
        checkDomains: (means) => runDueChecks({ ...domainChecks, db: workerDb, clock, logger, ...means }),
        deleteExpiredOfHttp: () => deleteExpired({ db: workerDb, clock }),
      })
    : null
  if (workers !== null) starting.defer(() => workers.stop(0))

  const wakeUps = startWakeUps({
    connectionString: database.connectionString,
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
    ...(workers !== null && { loneEvents: createLoneEvents({ clock, leasing: workers.leasing, tracer }) }),
  })
  const deliveries = createDeliveryService({ ...delivering, wake: (flow) => workers?.wakeDelivery(flow) })
  const subscribers = createSubscriberService({ clock, outbox })
  const means = { clock, logger, outbox, tokens, onFact: metrics.onFact }

  const unsubscribe = (from: Parameters<typeof unsubscribeByLink>[2]) =>
    unsubscribeByLink(db, { clock, subscribers }, from)
  const tracking = roles.api ? startTracking({ ...means, ...polling, db, unsubscribe }) : null
  starting.defer(() => tracking?.stop())

  const http = await startHttp({
    config: config.http,
    api: roles.api
      ? {
          ...domainChecks,
          ...(options.makeDkimKeys && { makeKeys: options.makeDkimKeys }),
          db,
          clock,
          outbox,
          secretBox,
          apiKeys,
          keyCache,
          rateLimits: config.rateLimits,
          document: publishedDocument(publicUrl === null ? {} : { serverUrl: publicUrl }),
          deliveries,
          subscribers,
          addressPolicy,
          maxPerAccount,
          webhookChanges,
          faultOfLinks,
          queue: queue.emails,
          wake: () => (roles.worker ? mail?.wake() : wakeUps.notify(emailsChannel)),
          traceparent: () => tracer.current().traceparent,
        }
      : null,
    registry,
    checks: {
      database: async () => isAnswering(db),
      migrations: async () => (await pendingMigrations(db, options.migrations)).length === 0,
      ...(workers !== null && {
        workers: async () => workers.alive() && (mail?.idleMs() ?? 0) < silenceLimitMs,
      }),
    },
    logger,
    tracer,
    ...(tracking !== null && { mailLinks: tracking.links }),
  })
  starting.defer(() => http.close(0))

  let inbound: SmtpListener | null = null
  if (roles.worker) {
    // Mail starts after the HTTP server, since its messages contain the server's address.
    mail = await startMail({
      ...means,
      ...polling,
      db: database.pool('postern mail', mailConnections),
      queue,
      secretBox,
      metrics,
      key,
      config: config.mail,
      successNotifications: inboundAddress !== null,
      faultOfLinks,
      publicUrl: () => publicUrl ?? http.url,
    })
    starting.defer(() => mail?.stop(0))
    if (inboundAddress !== null)
      inbound = await startInboundListener({
        ...means,
        ...inboundAddress,
        db: workerDb,
        registry,
        hostname,
        keyOf: addressKey,
      })
    starting.defer(() => inbound?.close(0))
    const onError = reportIn('the check for refused webhooks')
    const refusing = { db: workerDb, policy: addressPolicy, resolve: resolverOf(addressPolicy), logger, onError }
    starting.defer(startReportingRefused(refusing))
  }
  warnAtStart(config, logger)

  const running = starting.move()
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= shutDown({
      deadlineMs: config.shutdownTimeoutSeconds * 1000,
      parts: [http.close, (ms) => workers?.stop(ms), (ms) => mail?.stop(ms), (ms) => inbound?.close(ms)],
      closeRest: () => Promise.all([tracer.stop(), running.disposeAsync()]),
    })
    return stopped
  }
  return {
    url: http.url,
    inboundPort: inbound?.port ?? null,
    ensureFirstAccount: async () => (roles.api ? apiKeys.ensureFirstAccount(db, { plan: firstPlan }) : null),
    failed: database.failed,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
