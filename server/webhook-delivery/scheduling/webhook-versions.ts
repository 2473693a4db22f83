/**
 * The latest versions of webhooks that this process was told of. It holds no URL and no secret: it only refuses
 * attempts whose webhook was read before a change. A webhook's version grows with each change of its URL, its secrets
 * or its status; a deleted webhook has version Infinity.
 *
 * Times are increasing numbers. They are only compared with each other.
 */
export type WebhookVersions = {
  /**
   * Records a change: this process calls it before it responds to the request, others when the notification arrives.
   */
  tell(webhookId: string, version: number, now: number): void
  /** Records whether this process receives notifications from now on. Initially it does not. */
  hear(isHearing: boolean, now: number): void
  readonly isHearing: boolean
  /**
   * Returns true if an attempt may begin with a webhook that was read earlier; otherwise read it again. A process that
   * receives no notifications may begin only with a fresh one: read for this attempt alone, right before it begins.
   */
  mayBegin(webhookId: string, read: ReadVersion, isFresh: boolean): boolean
  /** Number of webhooks whose versions are remembered. */
  readonly size: number
}

/** A webhook's version as it was read, by a statement sent after `readAt`. */
export type ReadVersion = { version: number; readAt: number }

/** About 100 bytes for each webhook. */
const defaultMaxWebhooks = 10_000

/**
 * Creates an empty record of versions. A change is told after its commit, so every later read includes it: a version
 * matters only for reads from before it was told.
 *
 * @param maxWebhooks Maximum number of webhooks remembered. Beyond it the oldest entry is forgotten, and everything
 *   read before that entry must be read again. Default 10,000.
 */
export function createWebhookVersions(maxWebhooks: number = defaultMaxWebhooks): WebhookVersions {
  /** The oldest entries come first. */
  const told = new Map<string, { version: number; at: number }>()
  /** Webhooks read before this time may lack changes that this process has not heard of or has forgotten. */
  let unknownUntil = Number.NEGATIVE_INFINITY
  let isHearing = false

  return {
    tell(webhookId, version, now) {
      const known = told.get(webhookId)?.version ?? 0
      told.delete(webhookId)
      told.set(webhookId, { version: Math.max(known, version), at: now })
      for (const [oldestId, { at }] of told) {
        if (told.size <= maxWebhooks) break
        told.delete(oldestId)
        unknownUntil = Math.max(unknownUntil, at)
      }
    },
    hear(hears, now) {
      if (hears && !isHearing) unknownUntil = now
      isHearing = hears
    },
    get isHearing() {
      return isHearing
    },
    mayBegin(webhookId, { version, readAt }, isFresh) {
      if (readAt <= unknownUntil || !(isHearing || isFresh)) return false
      const change = told.get(webhookId)
      return change === undefined || version >= change.version || readAt > change.at
    },
    get size() {
      return told.size
    },
  }
}
