import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { sourceHash } from '../../scripts/dashboard/source-hash.ts'

const root = join(import.meta.dirname, '../..')
const pages = ['index.html', 'portal.html', 'mark.svg'].map((name) => `server/dashboard/${name}`)
const copied = ['package-lock.json', 'scripts/dashboard.ts', ...pages]
const run = promisify(execFile)

/** Bytes of JavaScript, gzipped, until the first screen is shown. Its charts are loaded after that. */
const firstViewBytes = 250_000

describe('building a dashboard', { timeout: 60_000 }, () => {
  let copy: string
  beforeEach(() => {
    copy = mkdtempSync(join(tmpdir(), 'postern-build-'))
    for (const name of [...copied, 'scripts/dashboard']) cpSync(join(root, name), join(copy, name), { recursive: true })
    // A dashboard that is built in no time.
    mkdirSync(join(copy, 'contract'))
    writeFileSync(join(copy, 'server/dashboard/main.tsx'), "document.title = 'Postern'")
    mkdirSync(join(copy, 'server/dashboard/portal'))
    writeFileSync(join(copy, 'server/dashboard/portal/main.tsx'), "document.title = 'Webhooks'")
  })
  afterEach(() => rmSync(copy, { recursive: true, force: true }))

  const built = () => join(copy, 'server/dashboard/built')
  const install = () => symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'), 'junction')
  const build = () => run(process.execPath, [join(copy, 'scripts/dashboard.ts'), '--if-stale'], { cwd: copy })
  const stamp = () => readFileSync(join(built(), 'sources.sha256'), 'utf8')

  test('building a dashboard builds once, and again when a source has changed', async () => {
    install()
    await build()
    const first = stamp()
    writeFileSync(join(built(), 'untouched'), '')
    await build()
    expect(existsSync(join(built(), 'untouched'))).toBe(true)

    writeFileSync(join(copy, 'server/dashboard/mark.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
    await build()
    expect(stamp()).not.toBe(first)
    expect(existsSync(join(built(), 'untouched'))).toBe(false)
  })

  test('building a dashboard lets the service start where the tools are not installed', async () => {
    const { stderr } = await build()

    expect(stderr).toContain('the tools to build it are not installed')
    expect(existsSync(built())).toBe(false)
  })

  test('building a dashboard lets the service start with the earlier build when a source is faulty', async () => {
    install()
    await build()
    const before = stamp()
    writeFileSync(join(copy, 'server/dashboard/main.tsx'), 'const = 1')
    const { stderr } = await build()

    expect(stderr).toContain('The service starts with the one of an earlier version')
    expect(stamp()).toBe(before)
  })

  test('building a dashboard leaves nothing half done when it is killed', async () => {
    install()
    const child = spawn(process.execPath, [join(copy, 'scripts/dashboard.ts')], { cwd: copy })
    // The folder beside it shows that the build is writing.
    const folder = join(copy, 'server/dashboard')
    await expect.poll(() => readdirSync(folder).some((name) => name.startsWith('built')), { interval: 5 }).toBe(true)
    child.kill('SIGKILL')
    await once(child, 'exit')
    // Where the signal came too late, all is there: the stamp is written last.
    expect(existsSync(built())).toBe(existsSync(join(built(), 'sources.sha256')))

    await build()
    expect(existsSync(join(built(), 'index.html'))).toBe(true)
    expect(readdirSync(folder).filter((name) => name.startsWith('built'))).toEqual(['built'])
  })

  test('building a dashboard does not count what was built as a source', async () => {
    install()
    const before = sourceHash(copy)
    await build()
    expect(sourceHash(copy)).toBe(before)
  })
})

type Manifest = Record<string, { file: string; imports?: string[] }>

test.each([
  ['the form to sign in', ['index.html', 'screens/sign-in/sign-in.tsx']],
  ['the overview', ['index.html', 'frame/shell.tsx', 'screens/overview/overview.tsx']],
  ['the list of emails', ['index.html', 'frame/shell.tsx', 'screens/emails/email-list.tsx']],
  ['the portal', ['portal.html', 'screens/webhooks/webhook-list.tsx']],
])('%s needs at most 250 kB of JavaScript, gzipped, in at most 20 files', (_, firstView) => {
  const folder = join(root, 'server/dashboard/built')
  const manifest: Manifest = JSON.parse(readFileSync(join(folder, '.vite/manifest.json'), 'utf8'))
  const needed = new Set<string>()
  const add = (name: string) => {
    const entry = manifest[name]
    if (entry === undefined) throw new Error(`the manifest has no ${name}`)
    if (needed.has(entry.file)) return
    needed.add(entry.file)
    for (const imported of entry.imports ?? []) add(imported)
  }
  for (const name of firstView) add(name)
  const sizes = [...needed].map((file) => gzipSync(readFileSync(join(folder, file)), { level: 9 }).length)
  const total = sizes.reduce((sum, size) => sum + size, 0)

  expect(total).toBeGreaterThan(50_000)
  expect(total).toBeLessThanOrEqual(firstViewBytes)
  expect(needed.size).toBeLessThanOrEqual(20)
})
