import { createBrandService, findBrand } from '../accounts/brand.ts'
import type { AccountService } from '../accounts/service.ts'
import { type AccountUsageOptions, createAccountUsageService } from '../accounts/usage.ts'
import { type AccountKeyServiceOptions, createAccountKeyService } from '../api-keys/account-keys.ts'
import { countKeysOf } from '../api-keys/count.ts'
import { lastUsesOfAccounts } from '../api-keys/last-uses-of-accounts.ts'
import type { ConfirmationMailer } from '../audiences/confirmation.ts'
import { createContactService } from '../audiences/contact-service.ts'
import { createAudienceService } from '../audiences/service.ts'
import { unsubscribedFrom } from '../audiences/unsubscribed.ts'
import { createAuditLogService } from '../audit-log/service.ts'
import { guardUsedAudience, guardUsedSegment, guardUsedTopic } from '../campaigns/in-use.ts'
import { type CampaignServiceOptions, createCampaignService } from '../campaigns/service.ts'
import { type ConfirmationMailerOptions, createConfirmationMailer } from '../confirmations/mailer.ts'
import { createDeliveryService, type DeliveryServiceOptions } from '../deliveries/service.ts'
import { countDomainsOf } from '../domains/count.ts'
import { createDomainService, type DomainServiceOptions, findSendingDomain, lacksDmarc } from '../domains/service.ts'
import { countBounces } from '../emails/bounce-counts.ts'
import { createEmailService, type EmailServiceOptions } from '../emails/service.ts'
import { createEventService } from '../events/service.ts'
import { createImportService, type ImportServiceOptions } from '../imports/service.ts'
import { createOperatorAccountService } from '../operator/accounts.ts'
import { createInstanceService, type InstanceOptions } from '../operator/instance.ts'
import { createPortalSessionService, type PortalSessionServiceOptions } from '../portal-sessions/service.ts'
import { createRequestLogService } from '../request-logs/service.ts'
import { createSegmentService } from '../segments/service.ts'
import { createStatisticsService, type StatisticsServiceOptions } from '../statistics/service.ts'
import { createCapturedMessageService, createInboundMessageService } from '../stored-messages/service.ts'
import { createContactPropertyService } from '../subscribers/property-service.ts'
import { createSubscriberService } from '../subscribers/service.ts'
import { createSubscriberTopicService } from '../subscribers/topics.ts'
import { createSuppressionService } from '../suppressions/service.ts'
import { createTemplateService, type TemplateServiceOptions } from '../templates/service.ts'
import { findWithoutTopic } from '../topics/choices.ts'
import { createTopicService } from '../topics/service.ts'
import { countMembers, countOpenInvitations } from '../users/counts.ts'
import { maxInvitations } from '../users/members.ts'
import { createUserServices, type UserServicesOptions } from '../users/service.ts'
import { countWebhooks } from '../webhooks/count.ts'
import { createWebhookService, type WebhookServiceOptions } from '../webhooks/service.ts'
import { selectWindows } from './rate-limit-windows.ts'
import type { Services } from './routes/index.ts'

/** The dependencies that several services share, and the options of single services. */
export type ServicesOptions = Shared & {
  usage: Pick<AccountUsageOptions, 'rateLimits'>
  operator: { accounts: AccountService; instance: Omit<InstanceOptions, 'clock'> }
  apiKeys: Omit<AccountKeyServiceOptions, keyof Shared>
  deliveries: Omit<DeliveryServiceOptions, keyof Shared>
  domains: Omit<DomainServiceOptions, keyof Shared | 'countBounces'>
  emails: Omit<
    EmailServiceOptions,
    keyof Shared | 'findSendingDomain' | 'findSuppressed' | 'findUnsubscribed' | 'findWithoutTopic' | 'renderTemplates'
  >
  confirmations: Pick<ConfirmationMailerOptions, 'confirmUrl'>
  templates: Omit<TemplateServiceOptions, keyof Shared>
  imports: Pick<ImportServiceOptions, 'wake'>
  campaigns: Omit<CampaignServiceOptions, keyof Shared | 'emails' | 'lacksDmarc'>
  statistics: Pick<StatisticsServiceOptions, 'statisticsMs'>
  portal: Omit<PortalSessionServiceOptions, keyof Shared>
  users: Omit<UserServicesOptions, keyof Shared>
  webhooks: Omit<WebhookServiceOptions, keyof Shared | 'deliveries'>
}

type Shared = Pick<DomainServiceOptions, 'clock' | 'outbox' | 'secretBox'>

/** Creates the services that the routes of the contract call. */
export function createServices({
  usage,
  operator,
  apiKeys,
  deliveries,
  domains,
  emails,
  confirmations,
  imports,
  templates,
  campaigns,
  statistics,
  portal,
  users,
  webhooks,
  ...shared
}: ServicesOptions): Services & { confirmations: ConfirmationMailer } {
  const deliveryService = createDeliveryService({ ...shared, ...deliveries })
  const suppressions = createSuppressionService(shared)
  const domainService = createDomainService({ ...shared, ...domains, countBounces })
  const webhookService = createWebhookService({ ...shared, ...webhooks, deliveries: deliveryService })
  const statisticsService = createStatisticsService({
    ...shared,
    ...statistics,
    checkDomain: (handle, { accountId }, id) => domainService.get(handle, accountId, id),
    checkWebhook: webhookService.get,
  })
  const usageService = createAccountUsageService({
    ...shared,
    ...usage,
    maxWebhooks: webhooks.maxPerAccount,
    maxInvitations,
    requestsSince: selectWindows,
    count: {
      webhooks: countWebhooks,
      apiKeys: countKeysOf,
      domains: countDomainsOf,
      members: countMembers,
      invitations: countOpenInvitations,
    },
    statistics: statisticsService.get,
  })
  const userServices = createUserServices({ ...shared, ...users })
  const templateService = createTemplateService({ ...shared, ...templates })
  const emailService = createEmailService({
    ...shared,
    ...emails,
    findSendingDomain,
    findSuppressed: suppressions.find,
    findUnsubscribed: unsubscribedFrom,
    findWithoutTopic,
    renderTemplates: templateService.render,
  })
  const confirmationMailer = createConfirmationMailer({
    ...shared,
    ...confirmations,
    faultOfLinks: emails.faultOfLinks,
    emails: emailService,
    findSuppressed: suppressions.find,
    findBrand,
  })
  const ofContacts = { ...shared, confirmations: confirmationMailer }
  const audiences = createAudienceService({ ...ofContacts, guardUsed: guardUsedAudience })
  return {
    webhooks: webhookService,
    deliveries: deliveryService,
    portalSessions: createPortalSessionService({ ...shared, ...portal }),
    events: createEventService(),
    subscribers: createSubscriberService(shared),
    audiences,
    contacts: createContactService(ofContacts),
    confirmations: confirmationMailer,
    contactProperties: createContactPropertyService(shared),
    segments: createSegmentService({ ...shared, guardUsed: guardUsedSegment }),
    topics: createTopicService({ ...shared, guardUsed: guardUsedTopic }),
    subscriberTopics: createSubscriberTopicService(shared),
    imports: createImportService({ ...shared, ...imports, audiences }),
    emails: emailService,
    campaigns: createCampaignService({ ...shared, ...campaigns, emails: emailService, lacksDmarc }),
    templates: templateService,
    suppressions,
    capturedMessages: createCapturedMessageService(),
    inboundMessages: createInboundMessageService(),
    domains: domainService,
    statistics: statisticsService,
    usage: usageService,
    brands: createBrandService(shared),
    operator: {
      accounts: createOperatorAccountService({
        ...shared,
        accounts: operator.accounts,
        rateLimits: usage.rateLimits,
        usage: usageService.get,
        lastUses: lastUsesOfAccounts,
        members: userServices.members.list,
      }),
      instance: createInstanceService({ ...shared, ...operator.instance }),
    },
    apiKeys: createAccountKeyService({ ...shared, ...apiKeys }),
    auditLog: createAuditLogService(),
    requestLogs: createRequestLogService(),
    users: userServices,
  }
}
