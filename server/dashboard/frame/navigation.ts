import {
  IconBan,
  IconBell,
  IconChartBar,
  IconClipboardList,
  IconDevices,
  IconGauge,
  IconKey,
  IconListDetails,
  IconMail,
  IconShieldLock,
  IconUser,
  IconUsers,
  IconUsersGroup,
  IconWebhook,
  IconWorld,
} from '@tabler/icons-react'
import type { Permission } from '../../../contract/permissions.ts'

export type NavigationItem = {
  label: string
  /** Below the account and the mode. */
  path: string
  icon: typeof IconMail
  /** Shown to people whose role has it. Null: to everybody. */
  permission: Permission | null
}

/** The screens, by the heading they stand under. */
export const navigation: readonly { heading: string | null; items: readonly NavigationItem[] }[] = [
  {
    heading: null,
    items: [
      { label: 'Overview', path: '/overview', icon: IconChartBar, permission: 'statistics:read' },
      { label: 'Emails', path: '/emails', icon: IconMail, permission: 'emails:read' },
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
      { label: 'Suppressions', path: '/suppressions', icon: IconBan, permission: 'suppressions:read' },
    ],
  },
  {
    heading: 'Settings',
    items: [
      { label: 'API keys', path: '/settings/api-keys', icon: IconKey, permission: 'api_keys:read' },
      { label: 'Members', path: '/settings/members', icon: IconUsersGroup, permission: 'members:read' },
      { label: 'Plan and usage', path: '/settings/usage', icon: IconGauge, permission: 'statistics:read' },
      { label: 'Audit log', path: '/settings/audit-log', icon: IconClipboardList, permission: 'audit_log:read' },
      { label: 'Sign-in security', path: '/settings/security', icon: IconShieldLock, permission: null },
      { label: 'Sessions', path: '/settings/sessions', icon: IconDevices, permission: null },
    ],
  },
]
