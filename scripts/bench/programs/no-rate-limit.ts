import { registerHooks } from 'node:module'

/* Loaded before the service (`node --import`): has it run without its rate limiter, to see what that costs. */

const replacement = import.meta.resolve('./no-limiter.ts')

registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context)
    return resolved.url.endsWith('/server/http/rate-limit.ts') ? { ...resolved, url: replacement } : resolved
  },
})
