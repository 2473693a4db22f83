import type { Mode } from '../../contract/mode.ts'

/**
 * One mode of one account. An API key sees and changes only objects in its scope. An event belongs to the scope of the
 * change that caused it.
 */
export type Scope = { readonly accountId: string; readonly mode: Mode }
