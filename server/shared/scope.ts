import type { ActorType } from '../../contract/audit-actions.ts'
import type { EventTypeName } from '../../contract/event-types.ts'
import type { Mode } from '../../contract/mode.ts'

/**
 * One mode of one account. An API key sees and changes only objects in its scope. An event belongs to the scope of the
 * change that caused it.
 */
export type Scope = {
  readonly accountId: string
  readonly mode: Mode
  /** Absent: all webhooks of the account and mode. */
  readonly portal?: PortalScope | undefined
}

/** The part of a scope that one customer of the account has in the portal. Only routes with `inPortal` have such a scope. */
export type PortalScope = {
  /** Only webhooks with this value of `customer` in their metadata are there. */
  readonly customer: string
  /** The event types that the customer may choose. Null: all. */
  readonly eventTypes: readonly EventTypeName[] | null
}

/** Who does something: a key, a user, a customer in the portal, or the operator on the command line. */
export type Actor = {
  readonly type: ActorType
  /** Null: the command line. */
  readonly id: string | null
  readonly name: string
}

/** Who makes a change and from where, for the audit log. */
export type Author = {
  readonly actor: Actor
  /** The address of the client. Null: there is none, or it is not known. */
  readonly ipAddress: string | null
}

/** The operator on the command line. */
export const commandLine: Author = {
  actor: { type: 'command_line', id: null, name: 'command line' },
  ipAddress: null,
}

/** The scope of a change, with its author. */
export type AuthoredScope = Scope & { readonly author: Author }
