import { campaignScreens } from './campaign-screens.ts'
import { contactScreens } from './contact-screens.ts'
import { deadUrl } from './fixtures.ts'
import { type Made, none, type Screen } from './screen.ts'

/** Returns every screen of an account. */
export function screensOf(made: Made): Screen[] {
  return [
    {
      path: 'overview',
      heading: 'Overview',
      permission: 'statistics:read',
      buttons: [],
      calls: [
        ['GET /v1/statistics', 'statistics:read'],
        ['GET /v1/account', 'statistics:read'],
        ['GET /v1/statistics/ranking', 'statistics:read'],
      ],
    },
    {
      path: 'emails',
      heading: 'Emails',
      permission: 'emails:read',
      buttons: [['Send an email', 'emails:send']],
      calls: [
        ['GET /v1/emails', 'emails:read'],
        ['POST /v1/emails', 'emails:send'],
      ],
    },
    {
      path: `emails/${made.email}`,
      heading: 'Tomorrow',
      area: 'Emails',
      permission: 'emails:read',
      buttons: [['Cancel the email', 'emails:send']],
      calls: [
        [`GET /v1/emails/${none}`, 'emails:read'],
        [`GET /v1/emails/${none}/attachments/0`, 'emails:read'],
        [`POST /v1/emails/${none}/resend`, 'emails:send'],
        [`POST /v1/emails/${none}/cancel`, 'emails:send'],
      ],
    },
    ...campaignScreens(made),
    {
      path: 'captured',
      heading: 'Captured',
      permission: 'emails:read',
      buttons: [['Delete all', 'emails:send']],
      calls: [
        ['GET /v1/captured-messages', 'emails:read'],
        ['DELETE /v1/captured-messages', 'emails:send'],
      ],
    },
    {
      path: `captured/${made.captured}`,
      heading: 'Hello',
      area: 'Captured',
      permission: 'emails:read',
      buttons: [['Delete', 'emails:send']],
      calls: [
        [`GET /v1/captured-messages/${none}`, 'emails:read'],
        [`GET /v1/captured-messages/${none}/attachments/0`, 'emails:read'],
        [`DELETE /v1/captured-messages/${none}`, 'emails:send'],
      ],
    },
    {
      path: 'domains',
      heading: 'Domains',
      permission: 'domains:read',
      buttons: [['Add domain', 'domains:write']],
      calls: [
        ['GET /v1/domains', 'domains:read'],
        ['POST /v1/domains', 'domains:write'],
      ],
    },
    {
      path: `domains/${made.domain}`,
      heading: 'pending.example',
      area: 'Domains',
      permission: 'domains:read',
      buttons: [
        ['Check now', 'domains:write'],
        ['More', 'domains:write'],
      ],
      calls: [
        [`GET /v1/domains/${none}`, 'domains:read'],
        [`POST /v1/domains/${none}/verify`, 'domains:write'],
        [`POST /v1/domains/${none}/rotate-keys`, 'domains:write'],
        [`DELETE /v1/domains/${none}`, 'domains:write'],
      ],
    },
    {
      path: `domains/${made.domain}/deliverability`,
      heading: 'Deliverability of pending.example',
      area: 'Domains',
      permission: 'domains:read',
      buttons: [['Check now', 'domains:read']],
      calls: [[`GET /v1/domains/${none}/deliverability`, 'domains:read']],
    },
    {
      path: 'webhooks',
      heading: 'Webhooks',
      permission: 'webhooks:read',
      buttons: [['Add webhook', 'webhooks:write']],
      calls: [
        ['GET /v1/webhooks', 'webhooks:read'],
        ['POST /v1/webhooks', 'webhooks:write'],
      ],
    },
    {
      path: `webhooks/${made.webhook}`,
      heading: deadUrl,
      area: 'Webhooks',
      permission: 'webhooks:read',
      buttons: [
        ['Send a test', 'webhooks:write'],
        ['More', 'webhooks:write'],
      ],
      calls: [
        [`GET /v1/webhooks/${none}`, 'webhooks:read'],
        [`POST /v1/webhooks/${none}/test`, 'webhooks:write'],
        [`POST /v1/webhooks/${none}/rotate-secret`, 'webhooks:write'],
        [`POST /v1/webhooks/${none}/recover`, 'webhooks:write'],
        [`PATCH /v1/webhooks/${none}`, 'webhooks:write'],
        [`DELETE /v1/webhooks/${none}`, 'webhooks:write'],
      ],
    },
    {
      path: `webhooks/${made.webhook}/receiver`,
      heading: 'Receiver',
      area: 'Webhooks',
      permission: 'webhooks:read',
      buttons: [],
      calls: [],
    },
    {
      path: `webhooks/${made.webhook}/deliveries/${made.delivery}`,
      heading: 'subscriber.added',
      area: 'Webhooks',
      permission: 'webhooks:read',
      buttons: [['Send again', 'webhooks:write']],
      calls: [
        [`GET /v1/webhooks/${none}/deliveries/${none}`, 'webhooks:read'],
        [`POST /v1/webhooks/${none}/deliveries/${none}/resend`, 'webhooks:write'],
      ],
    },
    {
      path: 'events',
      heading: 'Events',
      permission: 'events:read',
      buttons: [],
      calls: [['GET /v1/events', 'events:read']],
    },
    {
      path: `events/${made.event}`,
      heading: 'contact.created',
      area: 'Events',
      permission: 'events:read',
      buttons: [],
      calls: [[`GET /v1/events/${none}`, 'events:read']],
    },
    {
      path: 'logs',
      heading: 'Logs',
      permission: 'request_logs:read',
      buttons: [],
      calls: [['GET /v1/request-logs', 'request_logs:read']],
    },
    {
      path: `logs/${made.request}`,
      heading: 'GET /v1/events/{id}',
      area: 'Logs',
      permission: 'request_logs:read',
      buttons: [],
      calls: [[`GET /v1/request-logs/${none}`, 'request_logs:read']],
    },
    {
      path: 'subscribers',
      heading: 'Subscribers',
      permission: 'subscribers:read',
      buttons: [
        ['Add subscriber', 'subscribers:write'],
        ['Actions for contact@example.com', 'subscribers:write'],
      ],
      calls: [
        ['GET /v1/subscribers', 'subscribers:read'],
        ['POST /v1/subscribers', 'subscribers:write'],
        [`PATCH /v1/subscribers/${none}`, 'subscribers:write'],
        [`DELETE /v1/subscribers/${none}`, 'subscribers:write'],
      ],
    },
    {
      path: `subscribers/${made.subscriber}`,
      heading: 'contact@example.com',
      area: 'Subscribers',
      permission: 'subscribers:read',
      buttons: [
        ['Edit', 'subscribers:write'],
        ['More', 'subscribers:write'],
        ['Change values', 'subscribers:write'],
        ['Add to an audience', 'contacts:write'],
        ['Actions for Readers', 'contacts:write'],
        ['Write to it again', 'suppressions:write'],
      ],
      calls: [
        [`GET /v1/subscribers/${none}`, 'subscribers:read'],
        [`GET /v1/subscribers/${none}/contacts`, 'contacts:read'],
        [`POST /v1/subscribers/${none}/unsubscribe`, 'subscribers:write'],
        [`PATCH /v1/audiences/${none}/contacts/${none}`, 'contacts:write'],
        [`DELETE /v1/audiences/${none}/contacts/${none}`, 'contacts:write'],
      ],
    },
    {
      path: 'audiences',
      heading: 'Audiences',
      permission: 'audiences:read',
      buttons: [
        ['Create audience', 'audiences:write'],
        ['Actions for Readers', 'audiences:write'],
      ],
      calls: [
        ['GET /v1/audiences', 'audiences:read'],
        ['POST /v1/audiences', 'audiences:write'],
      ],
    },
    {
      path: `audiences/${made.audience}`,
      heading: 'Readers',
      area: 'Audiences',
      permission: 'audiences:read',
      buttons: [
        ['Delete', 'audiences:write'],
        ['Edit', 'audiences:write'],
        ['Add contact', 'contacts:write'],
        ['Actions for contact@example.com', 'contacts:write'],
      ],
      calls: [
        [`GET /v1/audiences/${none}`, 'audiences:read'],
        [`GET /v1/audiences/${none}/contacts`, 'contacts:read'],
        [`POST /v1/audiences/${none}/contacts`, 'contacts:write'],
        [`PATCH /v1/audiences/${none}`, 'audiences:write'],
        [`DELETE /v1/audiences/${none}`, 'audiences:write'],
      ],
    },
    ...contactScreens(made),
    {
      path: 'suppressions',
      heading: 'Suppressions',
      permission: 'suppressions:read',
      buttons: [
        ['Suppress an address', 'suppressions:write'],
        ['Remove contact@example.com', 'suppressions:write'],
      ],
      calls: [
        ['GET /v1/suppressions', 'suppressions:read'],
        ['POST /v1/suppressions', 'suppressions:write'],
        ['DELETE /v1/suppressions/none@example.com', 'suppressions:write'],
      ],
    },
    {
      path: 'settings/api-keys',
      heading: 'API keys',
      permission: 'api_keys:read',
      buttons: [
        ['Create API key', 'api_keys:write'],
        ['Actions for Shop', 'api_keys:write'],
      ],
      calls: [
        ['GET /v1/api-keys', 'api_keys:read'],
        ['POST /v1/api-keys', 'api_keys:write'],
        [`POST /v1/api-keys/${none}/revoke`, 'api_keys:write'],
        [`DELETE /v1/api-keys/${none}`, 'api_keys:write'],
      ],
    },
    {
      path: 'settings/members',
      heading: 'Members',
      permission: 'members:read',
      buttons: [
        ['Invite', 'members:write'],
        ['Actions for Ada Lovelace', 'members:write'],
        ['Withdraw the invitation of invited@example.com', 'members:write'],
      ],
      calls: [
        ['GET /v1/members', 'members:read'],
        ['GET /v1/invitations', 'members:read'],
        ['POST /v1/invitations', 'members:write'],
        [`DELETE /v1/invitations/${none}`, 'members:write'],
        [`PATCH /v1/members/${none}`, 'members:write'],
        [`DELETE /v1/members/${none}`, 'members:write'],
      ],
    },
    {
      path: 'settings/usage',
      heading: 'Plan and usage',
      permission: 'statistics:read',
      buttons: [],
      calls: [['GET /v1/account', 'statistics:read']],
    },
    {
      path: 'settings/audit-log',
      heading: 'Audit log',
      permission: 'audit_log:read',
      buttons: [],
      calls: [['GET /v1/audit-log', 'audit_log:read']],
    },
    {
      path: 'settings/security',
      heading: 'Sign-in security',
      permission: null,
      buttons: [
        ['Set up', null],
        ['Change password', null],
      ],
      calls: [],
    },
    { path: 'settings/sessions', heading: 'Sessions', permission: null, buttons: [], calls: [] },
  ]
}
