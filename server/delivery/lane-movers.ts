import { type LaneChangeMeans, moveWaiting } from './lane-change.ts'

/** What moves the deliveries that wait for webhooks which have become slow, beside everything else. */
export type LaneMovers = {
  start(webhook: { id: string; lane: number }): void
  /** Ends that of a webhook: what is left is moved when it is claimed. */
  stop(webhookId: string): void
  /** Ends all, and waits for them. */
  stopAll(): Promise<void>
}

export function createLaneMovers(means: LaneChangeMeans, onError: (error: unknown) => void): LaneMovers {
  const controllers = new Map<string, AbortController>()
  const moving = new Set<Promise<void>>()

  return {
    start(webhook) {
      controllers.get(webhook.id)?.abort()
      const controller = new AbortController()
      controllers.set(webhook.id, controller)
      const moved = moveWaiting(means, webhook, controller.signal)
        .catch(onError)
        .finally(() => {
          moving.delete(moved)
          if (controllers.get(webhook.id) === controller) controllers.delete(webhook.id)
        })
      moving.add(moved)
    },
    stop: (webhookId) => controllers.get(webhookId)?.abort(),
    async stopAll() {
      for (const controller of controllers.values()) controller.abort()
      await Promise.all(moving)
    },
  }
}
