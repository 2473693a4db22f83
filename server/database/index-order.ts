import { prepare } from './prepared.ts'

/**
 * For a transaction: indexes are read in their order, whatever the statistics say, and not sorted as a whole. Ends with
 * the transaction, or with `readAsUsual`.
 */
export const readInOrder = prepare<Record<string, never>>({ name: 'read_in_order', sendsWithNext: true })`
  SELECT set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true)
`

/** Ends `readInOrder` for the statements that follow in the transaction: sessions of the service have both on. */
export const readAsUsual = prepare<Record<string, never>>({ name: 'read_as_usual', sendsWithNext: true })`
  SELECT set_config('enable_sort', 'on', true), set_config('enable_bitmapscan', 'on', true)
`
