import { findBrand } from '../accounts/brand.ts'
import { startLastUses } from '../api-keys/last-used.ts'
import { silenceLimitMs } from '../background/workers.ts'
import { campaignSilenceLimitMs } from '../campaigns/worker.ts'
import { createConfirmations } from '../confirmations/confirm.ts'
import { countUnsubscribed } from '../email-delivery/count-unsubscribed.ts'
import { createEventStreams } from '../events/streams.ts'
import { clientAddressOf } from '../http/client-address.ts'
import { startHttp } from '../http/start.ts'
import { createWindowLimits } from '../http/window-limits.ts'
import type { UnsubscribeRef } from '../message/mail-tokens.ts'
import { createRequestLogCounter } from '../request-logs/metrics.ts'
import { startRequestLogs } from '../request-logs/recorder.ts'
import { unsubscribeByLink } from '../subscribers/one-click.ts'
import { type PreferencesChange, savePreferences, showPreferences } from '../subscribers/preferences.ts'
import { startTracking } from '../tracking/start.ts'
import type { Context } from './context.ts'
import type { Delivery } from './delivery.ts'
import type { Features } from './features.ts'

/** Changes that a reader may make by the page of an unsubscribe link, in each process. */
const readerChangesPerMinute = 30

/** Starts the HTTP server: health checks and metrics, and with the role `api` the API and the links in emails. */
export async function startApi(
  context: Context,
  { background, outbox }: Delivery,
  { services, apiKeys, mailMetrics, webPages }: Features,
) {
  await using starting = new AsyncDisposableStack()
  const { config, clock, logger, registry, db, later, pollIntervalMs: intervalMs } = context
  const { roles, rateLimits } = config
  const { publicUrl } = config.http

  const lastUses = startLastUses({ db, clock, logger, addressOf: clientAddressOf })
  starting.defer(() => lastUses.stop())
  const counter = createRequestLogCounter(registry)
  const isLogging = roles.api && config.requestLogs
  const requestLogs = isLogging ? startRequestLogs({ db, clock, logger, counter, intervalMs }) : null
  starting.defer(() => requestLogs?.stop())
  const changes = createWindowLimits({ clock, perMinute: readerChangesPerMinute })
  const takeChange = (person: string) => changes.take(person).allowed
  const tracking = roles.api ? startTracking(linksInEmails()) : null
  starting.defer(() => tracking?.stop())
  const eventStreams = createEventStreams({
    db,
    intervalMs,
    onError: (err) => logger.error({ err }, 'reading events for streams failed; trying again'),
  })
  starting.defer(() => eventStreams.close())

  const api = {
    services,
    db,
    clock,
    secretBox: context.secretBox,
    apiKeys,
    keyCache: context.keyCache,
    lastUses,
    rateLimits,
    eventStreams,
    heartbeatMs: context.options.heartbeatMs,
    requestLogs,
    capturing: context.isCaptured,
    dashboardBuilt: context.options.dashboardBuilt,
    document,
  }
  const http = await startHttp({
    config: config.http,
    api: roles.api ? api : null,
    registry,
    checks: { ...context.checks, ...(roles.worker && { workers: async () => workersAlive() }) },
    logger,
    tracer: context.tracer,
    ...(tracking !== null && { mailLinks: tracking.links, confirmations: confirmations() }),
    ...(roles.api && { webPages }),
  })
  starting.defer(() => http.close(0))
  later.serverUrl = http.url
  const running = starting.move()
  return {
    url: http.url,
    /** Functions that stop taking requests, to be run in parallel. */
    stopping: [eventStreams.close, http.close],
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }

  /** Takes longer than all else here, and few processes are asked for it: not while the service starts. */
  async function document() {
    const { publishedDocument } = await import('../../openapi/published.ts')
    return publishedDocument(publicUrl === null ? {} : { serverUrl: publicUrl })
  }

  function linksInEmails() {
    const { tokens } = context
    const { subscribers } = services
    return {
      db,
      clock,
      logger,
      outbox,
      tokens,
      onFact: mailMetrics.onFact,
      pollIntervalMs: intervalMs,
      unsubscribe: (from: UnsubscribeRef) =>
        unsubscribeByLink(db, { clock, outbox, subscribers, count: countUnsubscribed }, from),
      preferences: (from: UnsubscribeRef) => showPreferences(db, from, findBrand),
      savePreferences: (from: UnsubscribeRef, change: PreferencesChange) =>
        savePreferences(db, { clock, outbox }, from, change),
      takeChange,
    }
  }

  function confirmations() {
    const { find: findSuppressed } = services.suppressions
    const tokens = context.confirmationTokens
    return createConfirmations({ clock, outbox, handle: db, tokens, findBrand, findSuppressed, takeChange })
  }

  function workersAlive(): boolean {
    const { mail, campaigns } = later
    return (
      background.workersAlive() &&
      (mail?.idleMs() ?? 0) < silenceLimitMs &&
      (campaigns?.idleMs() ?? 0) < campaignSilenceLimitMs
    )
  }
}
