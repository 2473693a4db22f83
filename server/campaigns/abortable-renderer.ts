import { whenAborted } from '../lib/when-aborted.ts'
import type { Renderer } from '../rendering/renderer.ts'

/** Returns a renderer that waits for no rendering when `signal` is aborted: it rejects at once with the reason. */
export function abortableRenderer(renderer: Renderer, signal: AbortSignal): Renderer {
  return {
    ...renderer,
    async render(content, people) {
      signal.throwIfAborted()
      const aborted = Promise.withResolvers<never>()
      const forget = whenAborted(signal, () => aborted.reject(signal.reason))
      try {
        return await Promise.race([renderer.render(content, people), aborted.promise])
      } finally {
        forget()
      }
    },
  }
}
