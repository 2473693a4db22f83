/**
 * Which versions of webhooks have been made known to this process. It holds no URL and no secret: it only refuses
 * attempts with what was read too early. A webhook's version grows with each change of its URL, its secrets or its
 * status; that of a deleted webhook is Infinity.
 *
 * Moments are numbers that grow. They are compared with each other only.
 */
export type WebhookVersions = {
  /** A webhook has changed: by this process before it answers, by others when a notification says so. */
  tell(webhookId: string, version: number, now: number): void
  /** Says whether this process hears of changes from now on. It begins without hearing. */
  hear(isHearing: boolean, now: number): void
  readonly isHearing: boolean
  /**
   * Whether an attempt may begin with what was read of a webhook. Otherwise it is to be read anew. A process that
   * does not hear may begin only with what is fresh: read for this attempt alone, and begun as it comes.
   */
  mayBegin(webhookId: string, read: ReadVersion, isFresh: boolean): boolean
  /** Webhooks whose versions are remembered. */
  readonly size: number
}

/** A webhook's version as it was read, by a statement that was sent after `readAt`. */
export type ReadVersion = { version: number; readAt: number }

/** About 100 bytes each. */
const defaultMaxWebhooks = 10_000

/**
 * A change is told after its commit, so what is read from then on has it: a version matters only to what was read
 * before it was told.
 *
 * @param maxWebhooks Webhooks remembered at most. Beyond it the one told of longest ago is forgotten, and all that was
 *   read before that is to be read anew. Default 10,000.
 */
export function createWebhookVersions(maxWebhooks: number = defaultMaxWebhooks): WebhookVersions {
  /** Those told of longest ago come first. */
  const told = new Map<string, { version: number; at: number }>()
  /** What was read before this may lack changes that this process does not know of. */
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
