import { whenAborted } from '../lib/when-aborted.ts'
import type { Renderer } from '../rendering/renderer.ts'

/** Returns a renderer of batches that waits for none when `signal` is aborted: it rejects at once with the reason. */
export function abortableRenderer(renderer: Renderer, signal: AbortSignal): Renderer {
  return {
    ...renderer,
    async renderFirst(content, people, limits) {
      signal.throwIfAborted()
      const aborted = Promise.withResolvers<never>()
      const forget = whenAborted(signal, () => aborted.reject(signal.reason))
      try {
        return await Promise.race([renderer.renderFirst(content, people, limits), aborted.promise])
      } finally {
        forget()
      }
    },
  }
}
