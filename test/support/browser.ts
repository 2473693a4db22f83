import { mkdtemp, rm } from 'node:fs/promises'
import { arch, platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import chromium from '@sparticuz/chromium'
import { type Browser, chromium as playwright } from 'playwright-core'
import { describe } from 'vitest'

/** The browser that the tests bring along is built for this machine alone. */
const runsHere = platform() === 'linux' && arch() === 'x64'

export type TestBrowser = AsyncDisposable & { browser: Browser }

export type BrowserOptions = {
  /** Host names that lead to this machine. Default: none but those of its own. */
  ownHosts?: string[]
}

/**
 * A Chromium that comes with the dev dependencies (Linux x64 only), unpacked for this run. It runs
 * without a sandbox, since it must also run as root: it opens nothing but the service under test.
 *
 * Throws when it cannot run here, and says why.
 */
export async function startBrowser({ ownHosts = [] }: BrowserOptions = {}): Promise<TestBrowser> {
  await using starting = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'postern-browser-'))
  starting.defer(() => rm(directory, { recursive: true, force: true }))
  const executablePath = await unpackInto(directory)
  const rules = ownHosts.map((host) => `MAP ${host} 127.0.0.1`).join(',')
  const args = ['--no-sandbox', '--disable-dev-shm-usage', ...(rules === '' ? [] : [`--host-resolver-rules=${rules}`])]
  const browser = await playwright.launch({ executablePath, args, headless: true })
  starting.defer(() => browser.close())
  const running = starting.move()
  return { browser, [Symbol.asyncDispose]: () => running.disposeAsync() }
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

/** The package unpacks into the directory for temporary files, and takes what is there already for its own. */
async function unpackInto(directory: string): Promise<string> {
  const before = process.env.TMPDIR
  process.env.TMPDIR = directory
  try {
    return await chromium.executablePath()
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}
