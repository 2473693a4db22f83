import { initContract } from '@ts-rest/core'
import { account } from './account.ts'
import { apiKeys } from './api-keys.ts'
import { audiences } from './audiences.ts'
import { auditLog } from './audit-log.ts'
import { brands } from './brand.ts'
import { campaigns } from './campaigns.ts'
import { capturedMessages } from './captured-messages.ts'
import { contactProperties } from './contact-properties.ts'
import { contacts } from './contacts.ts'
import { deliveries } from './deliveries.ts'
import { domains } from './domains.ts'
import { emails } from './emails.ts'
import { events } from './events.ts'
import { identities } from './identities.ts'
import { imports } from './imports.ts'
import { inboundMessages } from './inbound-messages.ts'
import { links } from './links.ts'
import { invitations, members } from './members.ts'
import { operator } from './operator.ts'
import { passkeys } from './passkeys.ts'
import { portalSessions } from './portal-sessions.ts'
import { requestLogs } from './request-logs.ts'
import { segments } from './segments.ts'
import { sessions } from './sessions.ts'
import { signInMethodRoutes } from './sign-in-methods.ts'
import { statistics } from './statistics.ts'
import { subscribers } from './subscribers.ts'
import { suppressions } from './suppressions.ts'
import { templates } from './templates.ts'
import { topics } from './topics.ts'
import { ownUser } from './user.ts'
import { webhooks } from './webhooks.ts'

/** Everything the API can do. The typed server and the published spec are both made from this. */
export const contract = initContract().router(
  {
    webhooks,
    deliveries,
    portalSessions,
    events,
    subscribers,
    audiences,
    contacts,
    contactProperties,
    segments,
    topics,
    imports,
    domains,
    emails,
    templates,
    campaigns,
    suppressions,
    capturedMessages,
    inboundMessages,
    statistics,
    account,
    brands,
    apiKeys,
    auditLog,
    requestLogs,
    sessions,
    links,
    ownUser,
    passkeys,
    identities,
    signInMethods: signInMethodRoutes,
    members,
    invitations,
    operator,
  },
  // A route answers only what it declares: the type checker sees to it.
  { strictStatusCodes: true },
)
