import { nextSequence } from '../lib/sequence.ts'
import { createWebhookVersions, type ReadVersion } from './scheduling/webhook-versions.ts'

/** Where PostgreSQL tells of a webhook whose URL, status or secrets have changed: by the triggers of its table. */
export const webhookChannel = 'webhook_changed'

/** What is said of a webhook that is gone. */
export const deletedVersion = Number.POSITIVE_INFINITY

/** Knows which webhooks have changed, so that no attempt begins with what was read of one before. */
export type WebhookChanges = {
  /** This process has committed a change. To be called before that is answered. */
  tell(webhookId: string, version: number): void
  /** A notification has come: what the triggers say. */
  tellNotified(payload: string): void
  /** All notifications of before `askedAt` have come, and others will. Milliseconds, monotonic. */
  hear(askedAt: number): void
  /** Notifications may be missed from now on. */
  hearNoMore(): void
  /**
   * Whether an attempt may begin now with what was read of a webhook. While notifications may be missed, only with
   * what `isFresh`: read for this attempt, in this turn of the event loop.
   */
  mayBegin(webhookId: string, read: ReadVersion, isFresh: boolean): boolean
}

/**
 * How old the last proof may be that notifications come. With a process that was suspended, or a connection that is
 * dead and looks alive, it bounds for how long an attempt may begin with what has been changed. Milliseconds.
 */
const longestSilenceMs = 10_000

/** Begins without hearing anything. */
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
      // As all channels are woken once the connection is there.
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
