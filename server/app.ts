import { publishedDocument } from '../openapi/published.ts'
import manifest from '../package.json' with { type: 'json' }
import { type AccountEmailWorker, startAccountEmailWorker } from './account-email/worker.ts'
import { findBrand } from './accounts/brand.ts'
import { createAccountService } from './accounts/service.ts'
import { createKeyCache } from './api-keys/cache.ts'
import { startLastUses } from './api-keys/last-used.ts'
import { createApiKeyService, type FirstAccount, keysChannel } from './api-keys/service.ts'
import { startBackground } from './background/start.ts'
import { silenceLimitMs } from './background/workers.ts'
import { startInboundListener } from './bounces/start.ts'
import { campaignSilenceLimitMs, startCampaignWorker } from './campaigns/worker.ts'
import type { Config } from './config/config.ts'
import { inTransaction } from './database/connection.ts'
import { runDueChecks } from './domains/check-domain.ts'
import type { MakeDkimKeys } from './domains/generate-keys.ts'
import { findServiceDomain } from './domains/service.ts'
import { faultOfLinksIn } from './email-delivery/link-faults.ts'
import { createMailMetrics } from './email-delivery/metrics.ts'
import { type MailSending, startMail } from './email-delivery/start.ts'
import { warnAtStart } from './email-delivery/start-warnings.ts'
import { indexOlderSubjects } from './emails/subject-index.ts'
import { createEventStreams } from './events/streams.ts'
import { type FoundationOptions, startFoundation } from './foundation.ts'
import { clientAddressOf } from './http/client-address.ts'
import { deleteExpired } from './http/retention.ts'
import { createServices } from './http/services.ts'
import { startHttp } from './http/start.ts'
import { createWindowLimits } from './http/window-limits.ts'
import { deleteEndedImports } from './imports/retention.ts'
import { type ImportWorker, startImportWorker } from './imports/worker.ts'
import type { Loop } from './lib/polling-loop.ts'
import { addressKey } from './message/address.ts'
import { createMailTokens, type UnsubscribeRef } from './message/mail-tokens.ts'
import { deleteEndedPortalSessions } from './portal-sessions/retention.ts'
import { selectProcesses, startRegister } from './processes/register.ts'
import { createRenderer } from './rendering/renderer.ts'
import { createRequestLogCounter } from './request-logs/metrics.ts'
import { startRequestLogs } from './request-logs/recorder.ts'
import { secretBox as createSecretBox, deriveKey } from './secrets/secret-box.ts'
import { shutDown } from './shutdown.ts'
import type { SmtpListener } from './smtp-listener/listener.ts'
import { unsubscribeByLink } from './subscribers/one-click.ts'
import { type PreferencesChange, savePreferences, showPreferences } from './subscribers/preferences.ts'
import { clearDeletedProperties } from './subscribers/property-service.ts'
import { clearDeletedTopics } from './topics/service.ts'
import { startTracking } from './tracking/start.ts'
import { relyingPartyOf } from './users/passkeys/relying-party.ts'
import { deleteEndedSessions } from './users/sessions.ts'
import { deleteOldSignInFailures } from './users/sign-in-delays.ts'
import { createExchange } from './webhook-delivery/attempt/exchange.ts'
import { createKeyring } from './webhook-delivery/attempt/keyring.ts'
import { countOutbox, createDeliveryMetrics, oldestUndeliveredAge } from './webhook-delivery/metrics.ts'
import { startReportingRefused } from './webhook-delivery/refused-webhooks.ts'
import { slowDestinations } from './webhook-delivery/slow-destinations.ts'
import { createWebhookChanges, type WebhookChanges } from './webhook-delivery/webhook-changes.ts'

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

/** Options for tests. */
export type AppOptions = FoundationOptions & {
  /** Milliseconds between polls of the workers. Default 1,000. */
  pollIntervalMs?: number
  /** Milliseconds between heartbeats of streams of events. Default 15,000. */
  heartbeatMs?: number
  /** Time limit of an exchange with an endpoint. Milliseconds. Default 30,000. */
  exchangeTimeoutMs?: number
  /** Creates the keys of sending domains. Default: as `createDkimKeyMaker` does. */
  makeDkimKeys?: MakeDkimKeys
  /** Tracks changed webhooks; a test passes its own to observe it. Default: a new one. */
  webhookChanges?: WebhookChanges
}

/** The plan of the account created at the first start. */
const firstPlan = 'scale'
/** The version of the service. */
const { version } = manifest
/** Changes that a reader may make by the page of an unsubscribe link, in each process. */
const readerChangesPerMinute = 30
/** Time for emails to users that are being sent when the service stops. Milliseconds. */
const accountEmailGraceMs = 2_000
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
  const { clock, logger, tracer, registry, database, db, queue, key, secretBox } = foundation
  const { roles, webhooks: policy } = config
  const { publicUrl } = config.http
  const { hostname, spfInclude, dnsServers: servers, inbound: inboundAddress, accountEmailFrom } = config.mail
  const isCaptured = config.mail.transport === 'capture'
  const { pollIntervalMs = 1_000, webhookChanges = createWebhookChanges(), makeDkimKeys: makeKeys } = options
  // A separate pool: a flood of requests must not keep the workers from settling, or the other way round.
  const workerDb = roles.worker ? database.pool('postern workers', workerConnections) : db

  // Delivery.
  const keyCache = createKeyCache({ clock })
  const domainChecks = { sender: { hostname, spfInclude }, dns: { servers }, isCaptured }
  const { places: connectionsPerOrigin } = config.delivery
  const exchange = createExchange({ policy, clock, connectionsPerOrigin, timeoutMs: options.exchangeTimeoutMs })
  starting.defer(() => exchange.close())
  const keyring = createKeyring(secretBox)
  const delivering = { queue, exchange, keyring, webhookChanges, clock, tracer, retentionMs: config.retentionMs }
  let mail: MailSending | null = null
  let campaigns: Loop | null = null
  let accountEmails: AccountEmailWorker | null = null
  let imports: ImportWorker | null = null
  const background = starting.use(
    await startBackground({
      ...delivering,
      ...config.delivery,
      ...createDeliveryMetrics(registry, { db, queue }),
      works: roles.worker,
      db: workerDb,
      connectionString: database.connectionString,
      logger,
      pollIntervalMs,
      statisticsMs: config.statisticsMs,
      wakeMail: () => mail?.wake(),
      on: { [keysChannel]: keyCache.tellNotified },
      checkDomains: (means) => runDueChecks({ ...domainChecks, db: workerDb, clock, logger, ...means }),
      deleteExpiredOfHttp: () =>
        Promise.all(
          [
            deleteExpired,
            deleteEndedSessions,
            deleteOldSignInFailures,
            deleteEndedPortalSessions,
            clearDeletedProperties,
            clearDeletedTopics,
            deleteEndedImports,
          ].map((run) => run({ db: workerDb, clock })),
        ),
      indexOlderSubjects: () => indexOlderSubjects(workerDb),
    }),
  )
  const { outbox } = background

  // Features.
  const faultOfLinks = faultOfLinksIn(config)
  const traceparent = () => tracer.current().traceparent
  const accounts = createAccountService({ clock })
  const apiKeys = createApiKeyService({ clock, accounts, onEnded: keyCache.tellNotified })
  const renderer = starting.use(createRenderer({ peopleAtOnce: 10 }))
  const tokens = createMailTokens(key)
  const unsubscribeUrl = (ref: UnsubscribeRef) => `${publicUrl ?? http.url}/u/${tokens.unsubscribe(ref)}`
  const services = createServices({
    clock,
    outbox,
    secretBox,
    usage: { rateLimits: config.rateLimits },
    operator: {
      accounts,
      instance: {
        version,
        retentionMs: config.retentionMs,
        statisticsMs: config.statisticsMs,
        processes: selectProcesses,
        countOutbox,
        deliveries: queue.depth,
        emails: queue.emails.depth,
        undeliveredSeconds: oldestUndeliveredAge,
        destinations: (handle, limit) => slowDestinations(handle, queue, limit),
      },
    },
    apiKeys: { apiKeys },
    deliveries: { ...delivering, wake: background.wakeDelivery },
    domains: { ...domainChecks, ...(makeKeys && { makeKeys }) },
    emails: { queue: queue.emails, wake: background.wakeMail, isCaptured, faultOfLinks, traceparent },
    // Workers of other processes find it at their next poll.
    imports: { wake: () => imports?.wake() },
    templates: { renderer },
    campaigns: { renderer, unsubscribeUrl },
    statistics: { statisticsMs: config.statisticsMs },
    portal: { serviceUrl: () => publicUrl ?? http.url, theme: config.portal },
    users: {
      serviceUrl: () => publicUrl ?? http.url,
      wakeAccountEmails: accountEmailFrom && (() => accountEmails?.wake()),
      relyingParty: () => relyingPartyOf(publicUrl, http.url),
      challengeKey: deriveKey(key, 'passkey challenge'),
      provider: config.identityProvider,
      pendingBox: createSecretBox(deriveKey(key, 'identity provider')),
      logger,
    },
    webhooks: { ...policy, addressPolicy: policy, webhookChanges },
  })
  const mailMetrics = createMailMetrics(registry)
  const recording = { clock, logger, outbox, tokens, onFact: mailMetrics.onFact }

  // HTTP: the API, and the links in emails.
  const lastUses = startLastUses({ db, clock, logger, addressOf: clientAddressOf })
  starting.defer(() => lastUses.stop())
  const logCounter = createRequestLogCounter(registry)
  const requestLogs =
    roles.api && config.requestLogs
      ? startRequestLogs({ db, clock, logger, counter: logCounter, intervalMs: pollIntervalMs })
      : null
  starting.defer(() => requestLogs?.stop())
  const { subscribers } = services
  const unsubscribe = (from: UnsubscribeRef) => unsubscribeByLink(db, { clock, outbox, subscribers }, from)
  const changesOfReaders = createWindowLimits({ clock, perMinute: readerChangesPerMinute })
  const ofLinks = {
    unsubscribe,
    preferences: (from: UnsubscribeRef) => showPreferences(db, from, findBrand),
    savePreferences: (from: UnsubscribeRef, change: PreferencesChange) =>
      savePreferences(db, { clock, outbox }, from, change),
    takeChange: (person: string) => changesOfReaders.take(person).allowed,
  }
  const tracking = roles.api ? startTracking({ ...recording, ...ofLinks, db, pollIntervalMs }) : null
  starting.defer(() => tracking?.stop())
  const { rateLimits } = config
  const document = () => publishedDocument(publicUrl === null ? {} : { serverUrl: publicUrl })
  const onError = (err: unknown) => logger.error({ err }, 'reading events for streams failed; trying again')
  const eventStreams = createEventStreams({ db, intervalMs: pollIntervalMs, onError })
  starting.defer(() => eventStreams.close())
  const ofRequests = { apiKeys, keyCache, lastUses, rateLimits, eventStreams, heartbeatMs: options.heartbeatMs }
  const api = { services, db, clock, secretBox, ...ofRequests, requestLogs, capturing: isCaptured }
  const workersAlive = async () =>
    background.workersAlive() &&
    (mail?.idleMs() ?? 0) < silenceLimitMs &&
    (campaigns?.idleMs() ?? 0) < campaignSilenceLimitMs
  const http = await startHttp({
    config: config.http,
    api: roles.api ? { ...api, document: document() } : null,
    registry,
    checks: { ...foundation.checks, ...(roles.worker && { workers: workersAlive }) },
    logger,
    tracer,
    ...(tracking !== null && { mailLinks: tracking.links }),
  })
  starting.defer(() => http.close(0))

  // Mail. It starts after the HTTP server, since emails contain the server's address.
  let inbound: SmtpListener | null = null
  if (roles.worker) {
    mail = await startMail({
      ...recording,
      config: config.mail,
      db: database.pool('postern mail', mailConnections),
      queue,
      key,
      secretBox,
      metrics: mailMetrics,
      pollIntervalMs,
      successNotifications: inboundAddress !== null,
      faultOfLinks,
      publicUrl: () => publicUrl ?? http.url,
    })
    starting.defer(() => mail?.stop(0))
    campaigns = startCampaignWorker({
      db: workerDb,
      clock,
      logger,
      outbox,
      // Of its own: neither do previews wait behind campaigns, nor campaigns behind previews.
      renderer: starting.use(createRenderer()),
      emails: services.emails,
      unsubscribeUrl,
      intervalMs: Math.ceil(pollIntervalMs / 4),
    })
    starting.defer(() => campaigns?.stop())
    if (accountEmailFrom !== null) {
      accountEmails = startAccountEmailWorker({
        db: workerDb,
        clock,
        logger,
        emails: services.users.accountEmails,
        transport: mail.transport,
        signers: mail.signers,
        from: accountEmailFrom,
        findDomain: (name) => findServiceDomain(workerDb, name),
        pollIntervalMs,
      })
      starting.defer(() => accountEmails?.stop(0))
    }
    const receiving = { ...recording, db: workerDb, registry, hostname, keyOf: addressKey }
    if (inboundAddress !== null) inbound = await startInboundListener({ ...receiving, ...inboundAddress })
    starting.defer(() => inbound?.close(0))
    starting.defer(startReportingRefused({ db: workerDb, policy, logger }))
  }
  const register = startRegister({ db: workerDb, logger, roles, version })
  starting.defer(() => register.stop())
  if (roles.worker) {
    imports = startImportWorker({ db: workerDb, clock, logger, outbox, pollIntervalMs })
    starting.defer(() => imports?.stop())
  }
  warnAtStart(config, logger)

  const running = starting.move()
  const stopMail = async (deadlineMs: number) => {
    // First, since it uses the transport of the other. What it has to abort is sent again later.
    await campaigns?.stop()
    await accountEmails?.stop(Math.min(deadlineMs, accountEmailGraceMs))
    await mail?.stop(deadlineMs)
  }
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= shutDown({
      deadlineMs: config.shutdownTimeoutSeconds * 1000,
      parts: [
        eventStreams.close,
        http.close,
        () => imports?.stop(),
        background.stop,
        stopMail,
        (ms) => inbound?.close(ms),
      ],
      closeRest: () => Promise.all([tracer.stop(), running.disposeAsync()]),
    })
    return stopped
  }
  return {
    url: http.url,
    inboundPort: inbound?.port ?? null,
    ensureFirstAccount: () =>
      inTransaction(db, async (trx) => {
        const first = roles.api ? await apiKeys.ensureFirstAccount(trx, { plan: firstPlan }) : null
        return first && { ...first, userLink: await services.users.operator.inviteFirst(trx, first.account.id) }
      }),
    hasUsers: () => services.users.operator.hasUsers(db),
    failed: database.failed,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
