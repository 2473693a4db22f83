/**
 * A program that starts the service as its environment says, stops it, and prints the paths of what
 * was loaded meanwhile, one a line.
 */
import { registerHooks } from 'node:module'

const loaded = new Set<string>()
registerHooks({
  load(url, context, nextLoad) {
    loaded.add(url)
    return nextLoad(url, context)
  },
})

const { startApp } = await import('../../../server/app.ts')
const { readConfig } = await import('../../../server/config/config.ts')
const { createLogger } = await import('../../../server/observability/logging.ts')
const app = await startApp(readConfig(), { logger: createLogger({ level: 'silent' }) })
await app.stop()
process.stdout.write([...loaded].join('\n'))
