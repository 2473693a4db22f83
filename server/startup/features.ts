import manifest from '../../package.json' with { type: 'json' }
import { createAccountService } from '../accounts/service.ts'
import { createApiKeyService } from '../api-keys/service.ts'
import { createWebPages } from '../campaigns/web-pages.ts'
import { faultOfLinksIn } from '../email-delivery/link-faults.ts'
import { createMailMetrics } from '../email-delivery/metrics.ts'
import { createServices } from '../http/services.ts'
import type { CampaignPageRef, MessagePageRef, UnsubscribeRef } from '../message/mail-tokens.ts'
import { selectProcesses } from '../processes/register.ts'
import { createRenderer } from '../rendering/renderer.ts'
import { secretBox as createSecretBox, deriveKey } from '../secrets/secret-box.ts'
import { createRendererTurns } from '../templates/renderer-turns.ts'
import { relyingPartyOf } from '../users/passkeys/relying-party.ts'
import { countOutbox, oldestUndeliveredAge } from '../webhook-delivery/metrics.ts'
import { slowDestinations } from '../webhook-delivery/slow-destinations.ts'
import type { Context } from './context.ts'
import type { Delivery } from './delivery.ts'

export type Features = ReturnType<typeof createFeatures>

/** The version of the service. */
export const { version } = manifest

/** Creates the services of the features, which requests and workers call. */
export function createFeatures(context: Context, { attempts, background, outbox }: Delivery) {
  const { config, clock, logger, tracer, queue, key, keyCache, secretBox, isCaptured, later, serviceUrl } = context
  const { makeDkimKeys: makeKeys } = context.options
  const { retentionMs, statisticsMs, webhooks: policy } = config
  const { publicUrl } = config.http
  const faultOfLinks = faultOfLinksIn(config)
  const accounts = createAccountService({ clock })
  const apiKeys = createApiKeyService({ clock, accounts, onEnded: keyCache.tellNotified })
  const renderer = createRenderer({ peopleAtOnce: 10 })
  const rendererOf = createRendererTurns(renderer)
  const unsubscribeUrl = (ref: UnsubscribeRef) => `${serviceUrl()}/u/${context.tokens.unsubscribe(ref)}`
  const webUrl = (ref: MessagePageRef) => `${serviceUrl()}/w/${context.tokens.messagePage(ref)}`
  const archiveUrl = (ref: CampaignPageRef) => `${serviceUrl()}/a/${context.tokens.campaignPage(ref)}`
  const services = createServices({
    clock,
    outbox,
    secretBox,
    usage: { rateLimits: config.rateLimits },
    operator: {
      accounts,
      instance: {
        version,
        retentionMs,
        statisticsMs,
        processes: selectProcesses,
        countOutbox,
        deliveries: queue.depth,
        emails: queue.emails.depth,
        undeliveredSeconds: oldestUndeliveredAge,
        destinations: (handle, limit) => slowDestinations(handle, queue, limit),
      },
    },
    apiKeys: { apiKeys },
    deliveries: { ...attempts, wake: background.wakeDelivery },
    domains: { ...context.domainChecks, ...(makeKeys && { makeKeys }) },
    emails: {
      queue: queue.emails,
      wake: background.wakeMail,
      isCaptured,
      faultOfLinks,
      traceparent: () => tracer.current().traceparent,
    },
    // Workers of other processes find it at their next poll.
    imports: { wake: () => later.imports?.wake() },
    confirmations: { confirmUrl: (ref) => `${serviceUrl()}/confirm/${context.confirmationTokens.make(ref)}` },
    templates: { rendererOf },
    campaigns: { rendererOf, unsubscribeUrl, webUrl, archiveUrl },
    statistics: { statisticsMs },
    portal: { serviceUrl, theme: config.portal },
    users: {
      serviceUrl,
      wakeAccountEmails: config.mail.accountEmailFrom && (() => later.accountEmails?.wake()),
      relyingParty: () => relyingPartyOf(publicUrl, serviceUrl()),
      challengeKey: deriveKey(key, 'passkey challenge'),
      provider: config.identityProvider,
      pendingBox: createSecretBox(deriveKey(key, 'identity provider')),
      logger,
    },
    webhooks: { ...policy, addressPolicy: policy, webhookChanges: context.webhookChanges },
  })
  return {
    services,
    apiKeys,
    faultOfLinks,
    mailMetrics: createMailMetrics(context.registry),
    unsubscribeUrl,
    webUrl,
    webPages: createWebPages({ db: context.db, tokens: context.tokens, rendererOf, archiveUrl }),
    [Symbol.asyncDispose]: () => renderer[Symbol.asyncDispose](),
  }
}
