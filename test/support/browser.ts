import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import chromium from '@sparticuz/chromium'
import { type Browser, chromium as playwright } from 'playwright-core'

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
