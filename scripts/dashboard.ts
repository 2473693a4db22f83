import { parseArgs } from 'node:util'
import { build, builtHash, paths, viteConfig } from './dashboard/build.ts'
import { sourceHash } from './dashboard/source-hash.ts'

/*
 * Builds the dashboard. With --if-stale only where its sources have changed, and never failing: `npm start` runs that
 * beside the service. With --watch it serves the dashboard at once for work on it, beside a running service.
 */

const { values } = parseArgs({ options: { 'if-stale': { type: 'boolean' }, watch: { type: 'boolean' } } })

async function watch(): Promise<void> {
  const { createServer } = await import('vite')
  const target = process.env.POSTERN_URL ?? 'http://127.0.0.1:3000'
  const server = await createServer({
    ...viteConfig(),
    logLevel: 'info',
    // The service takes requests of its own origin only.
    server: { host: '127.0.0.1', proxy: { '/v1': { target, changeOrigin: true, headers: { origin: target } } } },
  })
  await server.listen()
  server.printUrls()
  process.stdout.write(`  The API is that of ${target} (POSTERN_URL)\n`)
}

async function buildIfStale(): Promise<void> {
  const hash = sourceHash(paths.root)
  const last = builtHash()
  if (last === hash) return
  if (values['if-stale']) process.stdout.write('The dashboard is being built. Until it is, /app waits for it.\n')
  try {
    await build(hash)
  } catch (error) {
    if (!values['if-stale']) throw error
    const isMissing = (error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND'
    const why = isMissing ? 'the tools to build it are not installed (npm ci)' : String(error)
    const what = last === null ? 'without it, and /app says what to do' : 'with the one of an earlier version'
    process.stderr.write(`The dashboard was not built: ${why}. The service starts ${what}.\n`)
  }
}

await (values.watch ? watch() : buildIfStale())
