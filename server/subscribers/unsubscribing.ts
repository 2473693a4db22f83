import type { Mode } from '../../contract/mode.ts'
import { liveKeyNeeded } from '../shared/errors.ts'

/**
 * Throws `authentication_error` when a test key would undo an unsubscription. Test keys share people with live sending,
 * so every change that ends an unsubscription must call this: setting the status to `active`, but also deleting the
 * status or separating it from the address.
 *
 * @param what The change that needs a live key, as the start of a sentence.
 * @param isUnsubscribed True when a person affected by the change has unsubscribed. Read it under a lock.
 */
export function guardUnsubscribing(
  what: string,
  { mode, isUnsubscribed }: { mode: Mode; isUnsubscribed: boolean },
): void {
  if (mode === 'test' && isUnsubscribed) throw liveKeyNeeded(what)
}
