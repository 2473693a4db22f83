import { type LaneChangeMeans, moveWaiting } from './lane-change.ts'

/** What moves the deliveries that wait for webhooks which have become slow, beside everything else. */
export type LaneMovers = {
  start(webhook: { id: string; lane: number }): void
  /** Ends that of a webhook, or all: what is left is moved when it is claimed. */
  stop(webhookId?: string): void
}

export function createLaneMovers(means: LaneChangeMeans, onError: (error: unknown) => void): LaneMovers {
  const moving = new Map<string, AbortController>()

  return {
    start(webhook) {
      moving.get(webhook.id)?.abort()
      const controller = new AbortController()
      moving.set(webhook.id, controller)
      void moveWaiting(means, webhook, controller.signal)
        .catch(onError)
        .finally(() => {
          if (moving.get(webhook.id) === controller) moving.delete(webhook.id)
        })
    },
    stop(webhookId) {
      for (const [id, controller] of moving) if (webhookId === undefined || webhookId === id) controller.abort()
    },
  }
}
