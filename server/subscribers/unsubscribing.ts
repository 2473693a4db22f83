import type { Mode } from '../../contract/mode.ts'
import { liveKeyNeeded } from '../shared/errors.ts'

/**
 * Refuses with `authentication_error` that a test key takes back that somebody unsubscribed. People are shared
 * with live sending, so everything that ends an unsubscribing asks here: setting a status to `active`, but also
 * whatever deletes the status or parts it from the address.
 *
 * @param what What needs a live key, as the beginning of a sentence.
 * @param isUnsubscribed Whether somebody unsubscribed whom the change is about. Read under a lock of theirs.
 */
export function guardUnsubscribing(
  what: string,
  { mode, isUnsubscribed }: { mode: Mode; isUnsubscribed: boolean },
): void {
  if (mode === 'test' && isUnsubscribed) throw liveKeyNeeded(what)
}
