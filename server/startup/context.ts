import type { AccountEmailWorker } from '../account-email/worker.ts'
import { createKeyCache } from '../api-keys/cache.ts'
import type { CampaignWorker } from '../campaigns/worker.ts'
import type { Config } from '../config/config.ts'
import type { MakeDkimKeys } from '../domains/generate-keys.ts'
import type { MailSending } from '../email-delivery/start.ts'
import type { ImportWorker } from '../imports/worker.ts'
import { createConfirmationTokens } from '../message/confirmation-tokens.ts'
import { createMailTokens } from '../message/mail-tokens.ts'
import { createWebhookChanges, type WebhookChanges } from '../webhook-delivery/webhook-changes.ts'
import type { Foundation, FoundationOptions } from './foundation.ts'

export type AppOptions = FoundationOptions & {
  /** Resolves when the dashboard is built, or cannot be. Default: nothing builds it now. */
  dashboardBuilt?: Promise<unknown>
  // For tests:
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

/**
 * The parts of this process that start last, and that earlier ones call: to wake them, to ask whether they work, and
 * for the address of the server. Null: not started yet, or not in this process.
 */
export type LaterParts = {
  serverUrl: string | null
  mail: MailSending | null
  campaigns: CampaignWorker | null
  accountEmails: AccountEmailWorker | null
  imports: ImportWorker | null
}

/** The dependencies that the parts of the service share. */
export type Context = ReturnType<typeof createContext>

/** Database connections of the workers. Each loop runs one statement at a time, and rarely all at once. */
const workerConnections = 6

export function createContext(foundation: Foundation, config: Config, options: AppOptions) {
  const { clock, database, db, key } = foundation
  const { hostname, spfInclude, dnsServers: servers, transport } = config.mail
  const { publicUrl } = config.http
  const { pollIntervalMs = 1_000, webhookChanges = createWebhookChanges() } = options
  const later: LaterParts = { serverUrl: null, mail: null, campaigns: null, accountEmails: null, imports: null }
  const isCaptured = transport === 'capture'
  return {
    ...foundation,
    config,
    options,
    pollIntervalMs,
    webhookChanges,
    // A separate pool: a flood of requests must not keep the workers from settling, or the other way round.
    workerDb: config.roles.worker ? database.pool('postern workers', workerConnections) : db,
    keyCache: createKeyCache({ clock }),
    tokens: createMailTokens(key),
    confirmationTokens: createConfirmationTokens(key),
    isCaptured,
    /** The dependencies of checks of the records of a sending domain. */
    domainChecks: { sender: { hostname, spfInclude }, dns: { servers }, isCaptured },
    later,
    /** Returns the URL of this service for others, without a slash at the end. Call it when the server listens. */
    serviceUrl(): string {
      const url = publicUrl ?? later.serverUrl
      if (url === null) throw new Error('the server does not listen yet')
      return url
    },
  }
}
