import type { SendEmail } from '../../../contract/emails.ts'
import { findBrand } from '../../../server/accounts/brand.ts'
import { createContactService } from '../../../server/audiences/contact-service.ts'
import { createAudienceService } from '../../../server/audiences/service.ts'
import { unsubscribedFrom } from '../../../server/audiences/unsubscribed.ts'
import { guardUsedAudience } from '../../../server/campaigns/in-use.ts'
import { createConfirmationMailer } from '../../../server/confirmations/mailer.ts'
import { createDomainService, findSendingDomain } from '../../../server/domains/service.ts'
import { countBounces } from '../../../server/emails/bounce-counts.ts'
import { createEmailService, type EmailServiceOptions } from '../../../server/emails/service.ts'
import { createConfirmationTokens } from '../../../server/message/confirmation-tokens.ts'
import { createOutbox } from '../../../server/outbox/append.ts'
import type { ClaimedEmail } from '../../../server/queue/email-queue.ts'
import { startQueue } from '../../../server/queue/queue.ts'
import { createRenderer } from '../../../server/rendering/renderer.ts'
import { secretBox } from '../../../server/secrets/secret-box.ts'
import { newId } from '../../../server/shared/ids.ts'
import { lanes } from '../../../server/shared/lanes.ts'
import { createSubscriberService } from '../../../server/subscribers/service.ts'
import { createSuppressionService } from '../../../server/suppressions/service.ts'
import { createRendererTurns } from '../../../server/templates/renderer-turns.ts'
import { createTemplateService } from '../../../server/templates/service.ts'
import { findWithoutTopic } from '../../../server/topics/choices.ts'
import { createTestTime } from '../clock.ts'
import { createTestDatabase } from '../database.ts'
import { live, testing } from '../scope.ts'
import { createEmittedReader } from './emitted.ts'

export type EmailWorld = Awaited<ReturnType<typeof createEmailWorld>>

export const hourMs = 3_600_000

/** Emails over a database and a queue of their own, with a verified domain, two accounts and a clock that is moved by hand. */
export async function createEmailWorld({
  traceparent = () => null,
}: Partial<Pick<EmailServiceOptions, 'traceparent'>> = {}) {
  const time = createTestTime(new Date('2026-03-01T09:30:00.000Z'))
  const { clock, queueClock, sessionOptions } = time
  const database = await createTestDatabase({ sessionOptions })
  const { db, connectionString } = database
  const queue = await startQueue({
    connectionString,
    works: false,
    clock: queueClock,
    sessionOptions,
    onError: (error) => {
      throw error
    },
  })
  let wakes = 0
  const renderer = createRenderer()
  const templates = createTemplateService({ clock, rendererOf: createRendererTurns(renderer) })
  const outbox = createOutbox({ clock, wake: () => undefined })
  const suppressions = createSuppressionService({ clock })
  const domains = createDomainService({
    sender: { hostname: 'mail.postern.example', spfInclude: null },
    dns: { servers: null },
    isCaptured: true,
    clock,
    outbox,
    secretBox: secretBox(Buffer.alloc(32, 3)),
    countBounces,
  })
  const emails = createEmailService({
    clock,
    outbox,
    queue: queue.emails,
    wake: () => void wakes++,
    isCaptured: true,
    faultOfLinks: null,
    findSendingDomain,
    findSuppressed: suppressions.find,
    findUnsubscribed: unsubscribedFrom,
    renderTemplates: templates.render,
    findWithoutTopic,
    traceparent,
  })

  const confirmationTokens = createConfirmationTokens(Buffer.alloc(32, 5))
  const confirmations = createConfirmationMailer({
    clock,
    emails,
    findSuppressed: suppressions.find,
    findBrand,
    confirmUrl: (ref) => `https://mail.postern.example/confirm/${confirmationTokens.make(ref)}`,
    faultOfLinks: null,
  })

  async function addAccount(name: string): Promise<string> {
    const id = newId('account', clock.now())
    await db.insertInto('accounts').values({ id, name, plan: 'scale' }).execute()
    return id
  }
  const account = await addAccount('Ours')
  const domain = await domains.create(db, live(account), { name: 'shop.test' })

  return {
    db,
    time,
    outbox,
    queue: queue.emails,
    account,
    stranger: await addAccount('Theirs'),
    /** In whose name live and test keys send. */
    live: live(account),
    test: testing(account),
    /** Verified. */
    domainId: domain.id,
    emails,
    templates,
    suppressions,
    contacts: createContactService({ clock, outbox, confirmations }),
    confirmationTokens,
    confirmations,
    domains,
    audiences: createAudienceService({ clock, outbox, confirmations, guardUsed: guardUsedAudience }),
    subscribers: createSubscriberService({ clock, outbox }),
    /** How often a commit has woken the sending. */
    wakes: () => wakes,
    /** The emails that are due now, with their claims given up at once. */
    async due(): Promise<string[]> {
      const claimed: ClaimedEmail[] = []
      for (const lane of lanes) {
        claimed.push(...(await queue.emails.claim('fresh', lane, 100)), ...(await queue.emails.claim('due', lane, 100)))
      }
      await db.transaction().execute((trx) =>
        queue.emails.remove(
          trx,
          claimed.map(({ emailId }) => emailId),
        ),
      )
      return claimed.map(({ emailId }) => emailId).toSorted()
    },
    emitted: createEmittedReader(db),
    async end(): Promise<void> {
      await renderer[Symbol.asyncDispose]()
      await queue.stop()
      await database.drop()
    },
  }
}

/** An email that a live key of the world may send. */
export const good: SendEmail = {
  from: 'Shop <hello@shop.test>',
  to: ['Ada <ada@example.org>'],
  subject: 'Welcome',
  text: 'It is good to have you here.',
}
