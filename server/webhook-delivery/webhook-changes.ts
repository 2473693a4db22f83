import { nextSequence } from '../lib/sequence.ts'
import { createWebhookVersions, type ReadVersion } from './scheduling/webhook-versions.ts'

/** The channel on which triggers notify of a webhook whose URL, status or secrets have changed. */
export const webhookChannel = 'webhook_changed'

/** The version announced for a deleted webhook. */
export const deletedVersion = Number.POSITIVE_INFINITY

/** Tracks which webhooks have changed, so that no attempt begins with an outdated one. */
export type WebhookChanges = {
  /** Records a change that this process has committed. Call it before the response is sent. */
  tell(webhookId: string, version: number): void
  /** Records a notification of the triggers. */
  tellNotified(payload: string): void
  /** Records that all notifications from before `askedAt` have arrived, and that more will. Milliseconds, monotonic. */
  hear(askedAt: number): void
  /** Records that notifications may be missed from now on. */
  hearNoMore(): void
  /**
   * Returns true if an attempt may begin now with a webhook that was read earlier. While notifications may be missed,
   * only a fresh one is allowed: read for this attempt, right before it begins.
   */
  mayBegin(webhookId: string, read: ReadVersion, isFresh: boolean): boolean
}

/**
 * Maximum age of the last proof that notifications arrive. If the process was suspended, or the connection is dead
 * without an error, attempts may begin with an outdated webhook for this long. Milliseconds.
 */
const longestSilenceMs = 10_000

/** Creates a tracker. Initially it receives no notifications. */
export function createWebhookChanges(): WebhookChanges {
  const versions = createWebhookVersions()
  let heardAt = Number.NEGATIVE_INFINITY

  function tell(webhookId: string, version: number): void {
    versions.tell(webhookId, version, nextSequence())
  }

  return {
    tell,
    tellNotified(payload) {
      const [webhookId = '', version = ''] = payload.split(' ')
      // The payload is empty when all channels are woken after connecting.
      if (webhookId !== '') tell(webhookId, Number(version))
    },
    hear(askedAt) {
      heardAt = askedAt
      versions.hear(true, nextSequence())
    },
    hearNoMore() {
      versions.hear(false, nextSequence())
    },
    mayBegin(webhookId, read, isFresh) {
      if (versions.isHearing && performance.now() - heardAt > longestSilenceMs) versions.hear(false, nextSequence())
      return versions.mayBegin(webhookId, read, isFresh)
    },
  }
}
