import type { Mode } from '../../contract/mode.ts'

/**
 * One mode of one account. A key sees and changes what is in its scope, and an event belongs to the scope
 * of what caused it.
 */
export type Scope = { readonly accountId: string; readonly mode: Mode }
