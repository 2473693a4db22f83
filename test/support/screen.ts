import type { Permission } from '../../contract/permissions.ts'

/** Something that needs a permission. Null: every member may do it. */
type Button = [name: string | RegExp, permission: Permission | null]
type Call = [operation: string, permission: Permission]

/** A screen of the dashboard, and what a role needs for it. */
export type Screen = {
  /** Below the account and the mode. */
  path: string
  heading: string
  /** Needed to see it. Null: every member sees it. */
  permission: Permission | null
  /** The heading where the permission is lacking. Default: `heading`. */
  area?: string
  /** Whether other screens lead there, and the navigation does not. Default: no list is such a screen. */
  isApart?: boolean
  buttons: Button[]
  /** The operations that the screen and its buttons call. */
  calls: Call[]
}

/** The id in the path of a call. There is no such object, so a call that is allowed changes nothing. */
export const none = 'none'

/** Ids of what the detail screens show. */
export type Made = Record<
  | 'email'
  | 'campaign'
  | 'template'
  | 'captured'
  | 'inbound'
  | 'domain'
  | 'webhook'
  | 'delivery'
  | 'event'
  | 'subscriber'
  | 'audience'
  | 'request'
  | 'import'
  | 'segment',
  string
>
