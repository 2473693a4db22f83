import type { AccountsTable } from './tables/accounts.ts'
import type { ApiKeysTable } from './tables/api-keys.ts'
import type { AuditLogTable } from './tables/audit-log.ts'
import type {
  CampaignLinksTable,
  CampaignRecipientsTable,
  CampaignsTable,
  CampaignVariantsTable,
} from './tables/campaigns.ts'
import type { AttemptsTable, DeliveriesTable, WebhookRecoveriesTable } from './tables/deliveries.ts'
import type { DomainKeysTable, DomainsTable } from './tables/domains.ts'
import type {
  EmailAttachmentsTable,
  EmailContentsTable,
  EmailMetadataTable,
  EmailRecipientsTable,
  EmailSubjectsTable,
  EmailsTable,
  EmailTagsTable,
  EmailTimelineTable,
  SuppressionsTable,
} from './tables/emails.ts'
import type {
  EventCountersTable,
  EventPositionsTable,
  EventsTable,
  OutboxRowsTable,
  OutboxView,
} from './tables/events.ts'
import type { ImportChunksTable, ImportFailuresTable, ImportsTable, ImportZipChunksTable } from './tables/imports.ts'
import type { IdempotencyKeysTable, RateLimitWindowsTable, SettingsTable } from './tables/operations.ts'
import type { PasskeysTable, UsedChallengesTable } from './tables/passkeys.ts'
import type { AudiencesTable, ContactPropertiesTable, ContactsTable, SubscribersTable } from './tables/people.ts'
import type { PortalSessionsTable } from './tables/portal-sessions.ts'
import type { ProcessesTable } from './tables/processes.ts'
import type { RequestLogDaysTable, RequestLogsTable } from './tables/request-logs.ts'
import type { SegmentsTable } from './tables/segments.ts'
import type { StatisticsDaysTable, StatisticsDeltasTable, StatisticsHoursTable } from './tables/statistics.ts'
import type { CapturedMessagesTable, InboundMessagesTable } from './tables/stored-messages.ts'
import type { TemplatesTable, TemplateVersionsTable } from './tables/templates.ts'
import type { AccountBrandsTable, TopicChoicesTable, TopicsTable } from './tables/topics.ts'
import type { UserIdentitiesTable } from './tables/user-identities.ts'
import type {
  AccountEmailsTable,
  MembershipsTable,
  RecoveryCodesTable,
  SignInFailuresTable,
  UserLinksTable,
  UserSessionsTable,
  UsersTable,
} from './tables/users.ts'
import type {
  DeliveryFlowsTable,
  FlowStatesTable,
  WebhookOutcomesTable,
  WebhooksTable,
  WebhookUrlsTable,
} from './tables/webhooks.ts'

/** All tables of the service, for Kysely. The tables of the queue are in the schema `pgboss`. */
export type Database = {
  accounts: AccountsTable
  api_keys: ApiKeysTable
  audit_log: AuditLogTable
  request_logs: RequestLogsTable
  request_log_days: RequestLogDaysTable
  processes: ProcessesTable
  users: UsersTable
  recovery_codes: RecoveryCodesTable
  memberships: MembershipsTable
  user_sessions: UserSessionsTable
  user_links: UserLinksTable
  account_emails: AccountEmailsTable
  sign_in_failures: SignInFailuresTable
  passkeys: PasskeysTable
  used_challenges: UsedChallengesTable
  user_identities: UserIdentitiesTable
  webhooks: WebhooksTable
  portal_sessions: PortalSessionsTable
  delivery_flows: DeliveryFlowsTable
  flow_states: FlowStatesTable
  webhook_outcomes: WebhookOutcomesTable
  webhook_urls: WebhookUrlsTable
  events: EventsTable
  event_counters: EventCountersTable
  event_positions: EventPositionsTable
  outbox_rows: OutboxRowsTable
  outbox: OutboxView
  deliveries: DeliveriesTable
  attempts: AttemptsTable
  webhook_recoveries: WebhookRecoveriesTable
  subscribers: SubscribersTable
  audiences: AudiencesTable
  contacts: ContactsTable
  contact_properties: ContactPropertiesTable
  segments: SegmentsTable
  account_brands: AccountBrandsTable
  topics: TopicsTable
  topic_choices: TopicChoicesTable
  imports: ImportsTable
  import_chunks: ImportChunksTable
  import_zip_chunks: ImportZipChunksTable
  import_failures: ImportFailuresTable
  domains: DomainsTable
  domain_keys: DomainKeysTable
  campaigns: CampaignsTable
  campaign_recipients: CampaignRecipientsTable
  campaign_links: CampaignLinksTable
  campaign_variants: CampaignVariantsTable
  emails: EmailsTable
  email_contents: EmailContentsTable
  email_metadata: EmailMetadataTable
  email_subjects: EmailSubjectsTable
  email_tags: EmailTagsTable
  email_attachments: EmailAttachmentsTable
  email_recipients: EmailRecipientsTable
  email_timeline: EmailTimelineTable
  suppressions: SuppressionsTable
  templates: TemplatesTable
  template_versions: TemplateVersionsTable
  captured_messages: CapturedMessagesTable
  inbound_messages: InboundMessagesTable
  idempotency_keys: IdempotencyKeysTable
  rate_limit_windows: RateLimitWindowsTable
  statistics_deltas: StatisticsDeltasTable
  statistics_hours: StatisticsHoursTable
  statistics_days: StatisticsDaysTable
  settings: SettingsTable
}
