import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { InlineConfig } from 'vite'

const root = join(import.meta.dirname, '../..')
const source = join(root, 'server/dashboard')
const built = join(source, 'built')

/** Rendered for each request. */
const pages = ['index.html', 'portal.html']

/** Holds the hash of the sources that the files beside it were made from. */
const stampName = 'sources.sha256'

export const paths = { root, source, built }

/** Returns the configuration of Vite for the dashboard. */
export function viteConfig(): InlineConfig {
  return {
    configFile: false,
    root: source,
    base: '/app/',
    logLevel: 'warn',
    cacheDir: join(root, 'node_modules/.cache/dashboard'),
    build: {
      // Those of spring 2024 and later: they know light-dark().
      target: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
      emptyOutDir: true,
      manifest: true,
      // Inline scripts and styles are refused by the Content-Security-Policy.
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      rolldownOptions: {
        input: pages.map((name) => join(source, name)),
        // Modules that five screens share are in one file. By default each module that two of them share has its own,
        // and the overview 72 files.
        output: { codeSplitting: { groups: [{ name: 'shared', minShareCount: 5 }] } },
        onLog(level, log, handle) {
          // Packages mark their modules with "use client", which means nothing here.
          if (log.code !== 'MODULE_LEVEL_DIRECTIVE') handle(level, log)
        },
      },
    },
  }
}

/** Returns the hash of the sources that the dashboard was last built from. Null: it is not built. */
export function builtHash(): string | null {
  try {
    return readFileSync(join(built, stampName), 'utf8')
  } catch {
    return null
  }
}

/**
 * Builds the dashboard into `server/dashboard/built`. Builds beside it and renames, so that a build that is killed leaves
 * either the old files or none. Throws when Vite is not installed.
 */
export async function build(hash: string): Promise<void> {
  // Otherwise Vite takes React for development wherever NODE_ENV has another value.
  process.env.NODE_ENV = 'production'
  removeLeftOvers()
  const { build: viteBuild } = await import('vite')
  const beside = `${built}-${process.pid}`
  const config = viteConfig()
  try {
    await viteBuild({ ...config, build: { ...config.build, outDir: beside } })
    await compressAll(beside)
    writeFileSync(join(beside, stampName), hash)
    replace(beside)
  } finally {
    rmSync(beside, { recursive: true, force: true })
  }
}

/** Removes what builds that were killed have left. */
function removeLeftOvers(): void {
  for (const name of readdirSync(source)) {
    const pid = /^built-(?:old-)?(\d+)$/.exec(name)?.[1]
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(source, name), { recursive: true, force: true })
  }
}

/** Not imported from `server/lib`: the image is built from the files of the dashboard alone. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function replace(beside: string): void {
  const old = `${built}-old-${process.pid}`
  try {
    renameSync(built, old)
  } catch {
    // It is built for the first time.
  }
  renameSync(beside, built)
  rmSync(old, { recursive: true, force: true })
}

const compressible = /\.(js|css|html|svg)$/

/** Puts `name.gz` and `name.br` beside each text file, so that the service does not compress. */
async function compressAll(folder: string): Promise<void> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => compressible.test(name))
  await Promise.all(
    names.map(async (name) => {
      const bytes = readFileSync(join(folder, name))
      if (pages.includes(name)) return
      const [gz, br] = await Promise.all([
        promisify(gzip)(bytes, { level: 9 }),
        promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
      ])
      writeFileSync(join(folder, `${name}.gz`), gz)
      writeFileSync(join(folder, `${name}.br`), br)
    }),
  )
}
