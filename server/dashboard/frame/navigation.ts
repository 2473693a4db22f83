import {
  IconActivity,
  IconAppWindow,
  IconBan,
  IconBell,
  IconBookmarks,
  IconBuilding,
  IconChartBar,
  IconClipboardList,
  IconDatabase,
  IconDevices,
  IconFilter,
  IconGauge,
  IconInbox,
  IconKey,
  IconListDetails,
  IconMail,
  IconMailQuestion,
  IconPalette,
  IconShieldLock,
  IconSpeakerphone,
  IconTags,
  IconTemplate,
  IconUpload,
  IconUser,
  IconUsers,
  IconUsersGroup,
  IconWebhook,
  IconWorld,
} from '@tabler/icons-react'
import type { Permission } from '../../../contract/permissions.ts'
import { capturesEmail } from '../captures-email.ts'

export type NavigationItem = {
  label: string
  /** Below the account and the mode, or below `/operator`. */
  path: string
  icon: typeof IconMail
  /** Shown to people whose role has it. Null: to everybody. */
  permission: Permission | null
  /** Whether the service has something to show there. Default: always. */
  isThere?: () => boolean
}

export type NavigationGroup = { heading: string | null; items: readonly NavigationItem[] }

/** The screens, by the heading they stand under. */
export const navigation: readonly NavigationGroup[] = [
  {
    heading: null,
    items: [
      { label: 'Overview', path: '/overview', icon: IconChartBar, permission: 'statistics:read' },
      { label: 'Emails', path: '/emails', icon: IconMail, permission: 'emails:read' },
      { label: 'Campaigns', path: '/campaigns', icon: IconSpeakerphone, permission: 'campaigns:read' },
      { label: 'Templates', path: '/templates', icon: IconTemplate, permission: 'templates:read' },
      { label: 'Captured', path: '/captured', icon: IconInbox, permission: 'emails:read', isThere: capturesEmail },
      { label: 'Inbound', path: '/inbound-messages', icon: IconMailQuestion, permission: 'emails:read' },
      { label: 'Domains', path: '/domains', icon: IconWorld, permission: 'domains:read' },
      { label: 'Webhooks', path: '/webhooks', icon: IconWebhook, permission: 'webhooks:read' },
      { label: 'Events', path: '/events', icon: IconBell, permission: 'events:read' },
      { label: 'Logs', path: '/logs', icon: IconListDetails, permission: 'request_logs:read' },
    ],
  },
  {
    heading: 'People',
    items: [
      { label: 'Subscribers', path: '/subscribers', icon: IconUser, permission: 'subscribers:read' },
      { label: 'Audiences', path: '/audiences', icon: IconUsers, permission: 'audiences:read' },
      { label: 'Segments', path: '/segments', icon: IconFilter, permission: 'segments:read' },
      { label: 'Topics', path: '/topics', icon: IconBookmarks, permission: 'topics:read' },
      { label: 'Properties', path: '/properties', icon: IconTags, permission: 'contacts:read' },
      { label: 'Imports', path: '/imports', icon: IconUpload, permission: 'contacts:read' },
      { label: 'Suppressions', path: '/suppressions', icon: IconBan, permission: 'suppressions:read' },
    ],
  },
  {
    heading: 'Settings',
    items: [
      { label: 'API keys', path: '/settings/api-keys', icon: IconKey, permission: 'api_keys:read' },
      { label: 'Members', path: '/settings/members', icon: IconUsersGroup, permission: 'members:read' },
      { label: 'Brand', path: '/settings/brand', icon: IconPalette, permission: 'topics:read' },
      {
        label: 'Customer portal',
        path: '/settings/portal-sessions',
        icon: IconAppWindow,
        permission: 'webhooks:read',
      },
      { label: 'Plan and usage', path: '/settings/usage', icon: IconGauge, permission: 'statistics:read' },
      { label: 'Audit log', path: '/settings/audit-log', icon: IconClipboardList, permission: 'audit_log:read' },
      { label: 'Sign-in security', path: '/settings/security', icon: IconShieldLock, permission: null },
      { label: 'Sessions', path: '/settings/sessions', icon: IconDevices, permission: null },
    ],
  },
]

/** The screens for operators of the service. */
export const operatorNavigation: readonly NavigationGroup[] = [
  {
    heading: null,
    items: [
      { label: 'Accounts', path: '/accounts', icon: IconBuilding, permission: null },
      { label: 'Service', path: '/service', icon: IconActivity, permission: null },
      { label: 'Storage', path: '/storage', icon: IconDatabase, permission: null },
    ],
  },
]
