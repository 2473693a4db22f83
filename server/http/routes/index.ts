import { initServer } from '@ts-rest/express'
import { contract } from '../../../contract/index.ts'
import type { BrandService } from '../../accounts/brand.ts'
import type { AccountUsageService } from '../../accounts/usage.ts'
import type { AccountKeyService } from '../../api-keys/account-keys.ts'
import type { ContactService } from '../../audiences/contact-service.ts'
import type { AudienceService } from '../../audiences/service.ts'
import type { AuditLogService } from '../../audit-log/service.ts'
import type { CampaignService } from '../../campaigns/service.ts'
import type { DeliveryService } from '../../deliveries/service.ts'
import type { DomainService } from '../../domains/service.ts'
import type { EmailService } from '../../emails/service.ts'
import type { EventService } from '../../events/service.ts'
import type { ImportService } from '../../imports/service.ts'
import type { OperatorAccountService } from '../../operator/accounts.ts'
import type { InstanceService } from '../../operator/instance.ts'
import type { PortalSessionService } from '../../portal-sessions/service.ts'
import type { RequestLogService } from '../../request-logs/service.ts'
import type { SegmentService } from '../../segments/service.ts'
import type { StatisticsService } from '../../statistics/service.ts'
import type { CapturedMessageService, InboundMessageService } from '../../stored-messages/service.ts'
import type { ContactPropertyService } from '../../subscribers/property-service.ts'
import type { SubscriberService } from '../../subscribers/service.ts'
import type { SubscriberTopicService } from '../../subscribers/topics.ts'
import type { SuppressionService } from '../../suppressions/service.ts'
import type { TemplateService } from '../../templates/service.ts'
import type { TopicService } from '../../topics/service.ts'
import type { UserServices } from '../../users/service.ts'
import type { WebhookService } from '../../webhooks/service.ts'
import type { FollowEvents } from '../event-stream.ts'
import type { Endpoint } from '../route-handler.ts'
import type { SessionEndpoints } from '../session-endpoint.ts'
import { accountRoutes, brandRoutes } from './account.ts'
import { apiKeyRoutes } from './api-keys.ts'
import { audienceRoutes } from './audiences.ts'
import { auditLogRoutes } from './audit-log.ts'
import { campaignRoutes } from './campaigns.ts'
import { contactPropertyRoutes } from './contact-properties.ts'
import { contactRoutes } from './contacts.ts'
import { deliveryRoutes } from './deliveries.ts'
import { domainRoutes } from './domains.ts'
import { emailRoutes } from './emails.ts'
import { eventRoutes } from './events.ts'
import { identityRoutes } from './identities.ts'
import { importRoutes } from './imports.ts'
import { invitationRoutes, memberRoutes } from './members.ts'
import { operatorRoutes } from './operator.ts'
import { passkeyRoutes, signInMethodRoutes } from './passkeys.ts'
import { portalSessionRoutes } from './portal-sessions.ts'
import { requestLogRoutes } from './request-logs.ts'
import { segmentRoutes } from './segments.ts'
import { linkRoutes, ownUserRoutes, sessionRoutes } from './sessions.ts'
import { statisticsRoutes } from './statistics.ts'
import { capturedMessageRoutes, inboundMessageRoutes } from './stored-messages.ts'
import { subscriberRoutes } from './subscribers.ts'
import { suppressionRoutes } from './suppressions.ts'
import { templateRoutes } from './templates.ts'
import { topicRoutes } from './topics.ts'
import { webhookRoutes } from './webhooks.ts'

export type Services = {
  webhooks: WebhookService
  deliveries: DeliveryService
  portalSessions: PortalSessionService
  events: EventService
  subscribers: SubscriberService
  audiences: AudienceService
  contacts: ContactService
  contactProperties: ContactPropertyService
  segments: SegmentService
  topics: TopicService
  subscriberTopics: SubscriberTopicService
  imports: ImportService
  domains: DomainService
  emails: EmailService
  templates: TemplateService
  campaigns: CampaignService
  suppressions: SuppressionService
  capturedMessages: CapturedMessageService
  inboundMessages: InboundMessageService
  statistics: StatisticsService
  usage: AccountUsageService
  brands: BrandService
  operator: { accounts: OperatorAccountService; instance: InstanceService }
  apiKeys: AccountKeyService
  auditLog: AuditLogService
  requestLogs: RequestLogService
  users: UserServices
}

/** The functions that turn use cases into routes. */
export type RouteWrappers = {
  /** Wraps each route about an account: finds the caller, and keeps the responses to requests with an `Idempotency-Key`. */
  endpoint: Endpoint
  /** Wraps the routes that are about no account. */
  sessionEndpoints: SessionEndpoints
  follow: FollowEvents
}

/** Creates the routes of the whole contract. Each route is one call of a service. */
export function createRoutes(services: Services, { endpoint, sessionEndpoints, follow }: RouteWrappers) {
  const { users } = services
  return initServer().router(contract, {
    sessions: sessionRoutes(users, sessionEndpoints),
    links: linkRoutes(users, sessionEndpoints),
    ownUser: ownUserRoutes(users, sessionEndpoints),
    passkeys: passkeyRoutes(users, sessionEndpoints),
    identities: identityRoutes(users, sessionEndpoints),
    signInMethods: signInMethodRoutes(users, sessionEndpoints),
    members: memberRoutes(users.members, endpoint),
    invitations: invitationRoutes(users.members, endpoint),
    operator: operatorRoutes(services.operator, sessionEndpoints),
    webhooks: webhookRoutes(services.webhooks, endpoint),
    deliveries: deliveryRoutes(services.deliveries, endpoint),
    portalSessions: portalSessionRoutes(services.portalSessions, endpoint, sessionEndpoints),
    events: eventRoutes(services.events, { endpoint, follow }),
    subscribers: subscriberRoutes(services.subscribers, endpoint),
    audiences: audienceRoutes(services.audiences, endpoint),
    contacts: contactRoutes(services.contacts, endpoint),
    imports: importRoutes(services.imports, endpoint),
    contactProperties: contactPropertyRoutes(services.contactProperties, endpoint),
    segments: segmentRoutes(services.segments, endpoint),
    topics: topicRoutes(services.topics, services.subscriberTopics, endpoint),
    domains: domainRoutes(services.domains, endpoint),
    emails: emailRoutes(services.emails, endpoint),
    templates: templateRoutes(services.templates, endpoint),
    campaigns: campaignRoutes(services.campaigns, endpoint),
    suppressions: suppressionRoutes(services.suppressions, endpoint),
    capturedMessages: capturedMessageRoutes(services.capturedMessages, endpoint),
    inboundMessages: inboundMessageRoutes(services.inboundMessages, endpoint),
    statistics: statisticsRoutes(services.statistics, endpoint),
    account: accountRoutes(services.usage, endpoint),
    brands: brandRoutes(services.brands, endpoint),
    apiKeys: apiKeyRoutes(services.apiKeys, endpoint),
    auditLog: auditLogRoutes(services.auditLog, endpoint),
    requestLogs: requestLogRoutes(services.requestLogs, endpoint),
  })
}
