/**
 * Which versions of webhooks have been made known to this process. It holds no URL and no secret: it only refuses
 * attempts with what was read too early. A webhook's version grows with each change of its URL, its secrets or its
 * status; that of a deleted webhook is Infinity.
 *
 * What is read after a version was told is at least of that version, since it is told after its commit. So only what
 * was read before and is still unbegun can be too old, and a version needs to be kept for the age of that.
 */
export type WebhookVersions = {
  /** A webhook has changed: by this process before it answers, by others when a notification says so. */
  tell(webhookId: string, version: number, now: number): void
  /** Whether an attempt may begin with what was read of a webhook. Otherwise it is to be read anew. */
  mayBegin(webhookId: string, version: number): boolean
  /** Says whether this process hears of changes from now on. It begins without hearing. */
  hear(isHearing: boolean, now: number): void
  /**
   * Whether changes may have been missed since a time. Asked for what was read then and has waited; what begins in
   * the turn of the event loop in which it was read is not asked for.
   */
  mayHaveMissed(readAt: number): boolean
  /** Forgets what was told before a time. To be called with the age that a claim cannot exceed. */
  forget(before: number): void
  readonly size: number
}

export function createWebhookVersions(): WebhookVersions {
  const told = new Map<string, { version: number; at: number }>()
  /** What was read before this may be too old. Infinity: no change is heard of. */
  let heardSince = Number.POSITIVE_INFINITY

  return {
    tell(webhookId, version, now) {
      const known = told.get(webhookId)?.version ?? 0
      // The latest stands last, so that `forget` finds the old ones first.
      told.delete(webhookId)
      told.set(webhookId, { version: Math.max(known, version), at: now })
    },
    mayBegin: (webhookId, version) => version >= (told.get(webhookId)?.version ?? 0),
    hear(isHearing, now) {
      if (!isHearing) heardSince = Number.POSITIVE_INFINITY
      else if (heardSince === Number.POSITIVE_INFINITY) heardSince = now
    },
    mayHaveMissed: (readAt) => readAt < heardSince,
    forget(before) {
      for (const [webhookId, { at }] of told) {
        if (at >= before) return
        told.delete(webhookId)
      }
    },
    get size() {
      return told.size
    },
  }
}
