import { registerHooks } from 'node:module'

/* Loaded before the service (`node --import`): runs it without its rate limiter, to measure the cost of that. */

const replacement = import.meta.resolve('./no-limiter.ts')

registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context)
    return resolved.url.endsWith('/server/http/rate-limit.ts') ? { ...resolved, url: replacement } : resolved
  },
})
