import { startAccountEmailWorker } from '../account-email/worker.ts'
import { startInboundListener } from '../bounces/start.ts'
import { startCampaignWorker } from '../campaigns/worker.ts'
import { findServiceDomain } from '../domains/service.ts'
import { type MailSending, startMail } from '../email-delivery/start.ts'
import { startImportWorker } from '../imports/worker.ts'
import { addressKey } from '../message/address.ts'
import type { Mailbox } from '../message/mailbox.ts'
import { createRenderer } from '../rendering/renderer.ts'
import type { SmtpListener } from '../smtp-listener/listener.ts'
import { startReportingRefused } from '../webhook-delivery/refused-webhooks.ts'
import type { Context } from './context.ts'
import type { Delivery } from './delivery.ts'
import type { Features } from './features.ts'

/** Database connections for sending email: for its loops, and for storing captured messages. */
const mailConnections = 6
/** Time for emails to users that are being sent when the service stops. Milliseconds. */
const accountEmailGraceMs = 2_000

/**
 * Starts what sends email, campaigns and imports, and takes bounces, if this process has the role `worker`. Call it
 * when the server listens, since emails contain its address.
 */
export async function startWorkers(context: Context, { outbox }: Delivery, features: Features) {
  await using starting = new AsyncDisposableStack()
  const { config, clock, logger, database, workerDb: db, later, pollIntervalMs } = context
  const { hostname, inbound: inboundAddress, accountEmailFrom } = config.mail
  const recording = { clock, logger, outbox, tokens: context.tokens, onFact: features.mailMetrics.onFact }
  let inbound: SmtpListener | null = null
  if (config.roles.worker) {
    const mail = await startMailWorker()
    startCampaigns(mail)
    if (accountEmailFrom !== null) startAccountEmails(mail, accountEmailFrom)
    const receiving = { ...recording, db, registry: context.registry, hostname, keyOf: addressKey }
    if (inboundAddress !== null) inbound = await startInboundListener({ ...receiving, ...inboundAddress })
    starting.defer(() => inbound?.close(0))
    starting.defer(startReportingRefused({ db, policy: config.webhooks, logger }))
    const { confirmations } = features.services
    later.imports = startImportWorker({ db, clock, logger, outbox, confirmations, pollIntervalMs })
    starting.defer(() => later.imports?.stop())
  }
  const running = starting.move()
  return {
    /** The port that takes notifications about email by SMTP. Null: none. */
    inboundPort: inbound?.port ?? null,
    /** Functions that stop taking work, to be run in parallel. */
    stopping: [
      async () => later.imports?.stop(),
      async (deadlineMs: number) => later.campaigns?.stop(deadlineMs),
      stopMail,
      async (deadlineMs: number) => inbound?.close(deadlineMs),
    ],
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }

  async function startMailWorker() {
    const mail = await startMail({
      ...recording,
      config: config.mail,
      db: database.pool('postern mail', mailConnections),
      queue: context.queue,
      key: context.key,
      secretBox: context.secretBox,
      metrics: features.mailMetrics,
      pollIntervalMs,
      successNotifications: inboundAddress !== null,
      faultOfLinks: features.faultOfLinks,
      publicUrl: context.serviceUrl,
    })
    later.mail = mail
    starting.defer(() => mail.stop(0))
    return mail
  }

  function startCampaigns({ bulkPause }: MailSending): void {
    const campaigns = startCampaignWorker({
      db,
      clock,
      logger,
      outbox,
      // Of its own: neither do previews wait behind campaigns, nor campaigns behind previews.
      renderer: starting.use(createRenderer()),
      emails: features.services.emails,
      unsubscribeUrl: features.unsubscribeUrl,
      webUrl: features.webUrl,
      bulkPause,
      intervalMs: Math.ceil(pollIntervalMs / 4),
    })
    later.campaigns = campaigns
    starting.defer(() => campaigns.stop(0))
  }

  function startAccountEmails({ transport, signers }: MailSending, from: Mailbox): void {
    const accountEmails = startAccountEmailWorker({
      db,
      clock,
      logger,
      emails: features.services.users.accountEmails,
      transport,
      signers,
      from,
      findDomain: (name) => findServiceDomain(db, name),
      pollIntervalMs,
    })
    later.accountEmails = accountEmails
    starting.defer(() => accountEmails.stop(0))
  }

  async function stopMail(deadlineMs: number): Promise<void> {
    const deadline = performance.now() + deadlineMs
    // First, since they use the transport of the other. What they have to abort is sent again later.
    await later.accountEmails?.stop(Math.min(deadlineMs, accountEmailGraceMs))
    await later.mail?.stop(Math.max(0, deadline - performance.now()))
  }
}
