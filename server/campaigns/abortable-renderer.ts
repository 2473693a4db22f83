import { unlessAborted } from '../lib/unless-aborted.ts'
import type { Renderer } from '../rendering/renderer.ts'

/** Returns a renderer of batches that waits for none when `signal` is aborted: it rejects at once with the reason. */
export function abortableRenderer(renderer: Renderer, signal: AbortSignal): Renderer {
  return {
    ...renderer,
    async renderFirst(content, people, limits) {
      signal.throwIfAborted()
      return unlessAborted(renderer.renderFirst(content, people, limits), signal, () => signal.reason)
    },
  }
}
