import { type LaneChangeMeans, moveWaiting } from './lane-change.ts'

/** What moves the deliveries that wait for webhooks which have become slow: beside everything else, one webhook after the other. */
export type LaneMovers = {
  start(webhook: { id: string; lane: number }): void
  /** Ends that of a webhook: what is left is moved when it is claimed. */
  stop(webhookId: string): void
  /** Ends all, and waits for that. */
  stopAll(): Promise<void>
}

export function createLaneMovers(means: LaneChangeMeans, onError: (error: unknown) => void): LaneMovers {
  /** Those to be moved; the first is being moved. By the ids of the webhooks. */
  const waiting = new Map<string, { lane: number; ending: AbortController }>()
  let moving: Promise<void> | undefined

  async function moveAll(): Promise<void> {
    for (const [id, { lane, ending }] of waiting) {
      await moveWaiting(means, { id, lane }, ending.signal).catch(onError)
      if (waiting.get(id)?.ending === ending) waiting.delete(id)
    }
    moving = undefined
  }

  return {
    start({ id, lane }) {
      waiting.get(id)?.ending.abort()
      waiting.delete(id)
      waiting.set(id, { lane, ending: new AbortController() })
      moving ??= moveAll()
    },
    stop: (webhookId) => waiting.get(webhookId)?.ending.abort(),
    async stopAll() {
      for (const { ending } of waiting.values()) ending.abort()
      await moving
    },
  }
}
