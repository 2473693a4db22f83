import { createContactService } from '../audiences/contact-service.ts'
import { createAudienceService } from '../audiences/service.ts'
import type { DeliveryService } from '../deliveries/service.ts'
import { createDomainService, type DomainServiceOptions, findSendingDomain } from '../domains/service.ts'
import { createEmailService, type EmailServiceOptions } from '../emails/service.ts'
import { createEventService } from '../events/service.ts'
import { createCapturedMessageService, createInboundMessageService } from '../stored-messages/service.ts'
import type { SubscriberService } from '../subscribers/service.ts'
import { createSuppressionService } from '../suppressions/service.ts'
import { createWebhookService, type WebhookServiceOptions } from '../webhooks/service.ts'
import type { Services } from './routes/index.ts'

export type ServicesOptions = DomainServiceOptions &
  Omit<WebhookServiceOptions, 'deliveries'> &
  Omit<EmailServiceOptions, 'findSendingDomain' | 'findSuppressed' | 'findUnsubscribed'> & {
    deliveries: DeliveryService
    subscribers: SubscriberService
  }

/** Creates the services that the routes of the contract call. */
export function createServices(options: ServicesOptions): Services {
  const { deliveries, subscribers } = options
  const contacts = createContactService(options)
  const suppressions = createSuppressionService(options)
  return {
    webhooks: createWebhookService(options),
    deliveries,
    events: createEventService(),
    subscribers,
    audiences: createAudienceService(options),
    contacts,
    emails: createEmailService({
      ...options,
      findSendingDomain,
      findSuppressed: suppressions.find,
      findUnsubscribed: contacts.unsubscribed,
    }),
    suppressions,
    capturedMessages: createCapturedMessageService(),
    inboundMessages: createInboundMessageService(),
    domains: createDomainService(options),
  }
}
