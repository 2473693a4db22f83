import type { Generated } from 'kysely'

/** A tenant. */
export type AccountsTable = {
  id: string
  name: string
  /** The name of a plan in the `RATE_LIMITS` setting. */
  plan: string
  created_at: Generated<Date>
}
