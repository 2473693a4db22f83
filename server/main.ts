import { keepCompiled } from './lib/compile-cache.ts'

/* The process of the service. Imports nothing else, so that all other modules are compiled with the cache. */

keepCompiled()
const { runService } = await import('./run-service.ts')
await runService()
