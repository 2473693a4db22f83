import { access, mkdtemp, rename, rm } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import chromium from '@sparticuz/chromium'
import { type Browser, chromium as playwright } from 'playwright-core'
import { describe, inject } from 'vitest'

/** The browser that the tests bring along is built for this machine alone. */
const runsHere = platform() === 'linux' && arch() === 'x64'

export type TestBrowser = AsyncDisposable & { browser: Browser }

export type BrowserOptions = {
  /** Host names that lead to this machine. Default: none but those of its own. */
  ownHosts?: string[]
}

/**
 * A Chromium that comes with the dev dependencies (Linux x64 only), unpacked once for a run. It runs without a sandbox,
 * since it must also run as root: it opens nothing but the service under test.
 *
 * Throws when it cannot run here, and says why.
 */
export async function startBrowser({ ownHosts = [] }: BrowserOptions = {}): Promise<TestBrowser> {
  const executablePath = await unpackOnce(join(inject('runDirectory'), 'browser'))
  const rules = ownHosts.map((host) => `MAP ${host} 127.0.0.1`).join(',')
  const args = ['--no-sandbox', '--disable-dev-shm-usage', ...(rules === '' ? [] : [`--host-resolver-rules=${rules}`])]
  const browser = await playwright.launch({ executablePath, args, headless: true })
  return { browser, [Symbol.asyncDispose]: () => browser.close() }
}

/**
 * A suite of tests that need the browser. Elsewhere they are skipped, and the title says why.
 *
 * @param options.timeout Milliseconds for each test.
 */
export function describeInBrowser(name: string, options: { timeout: number }, suite: () => void): void {
  const why = `skipped: the browser of the tests runs on Linux x64 only, this is ${platform()} ${arch()}`
  describe.runIf(runsHere)(runsHere ? name : `${name} (${why})`, options, suite)
}

/** Unpacks the browser into a directory, whole or not at all, unless another test file has. Returns its path. */
async function unpackOnce(directory: string): Promise<string> {
  const file = join(directory, 'chromium')
  if (await isThere(file)) return file
  const own = await mkdtemp(`${directory}-`)
  await unpackInto(own)
  try {
    await rename(own, directory)
  } catch (error) {
    // Another file was faster.
    await rm(own, { recursive: true, force: true })
    if (!(await isThere(file))) throw error
  }
  return file
}

function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}

/** The package unpacks into the directory for temporary files, and takes what is there already for its own. */
async function unpackInto(directory: string): Promise<void> {
  const before = process.env.TMPDIR
  process.env.TMPDIR = directory
  try {
    await chromium.executablePath()
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}
