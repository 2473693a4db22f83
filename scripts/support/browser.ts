import { mkdtemp, rm } from 'node:fs/promises'
import { arch, platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import chromium from '@sparticuz/chromium'
import { type Browser, chromium as playwright } from 'playwright-core'

/* A Chromium that comes with the dev dependencies. */

/** Whether it runs on this machine: it is built for Linux x64 alone. */
export const browserRunsHere = platform() === 'linux' && arch() === 'x64'

export type BrowserOptions = {
  /** Host names that lead to this machine. Default: none but those of its own. */
  ownHosts?: string[]
}

/** Unpacks the browser into a directory, for a run. Disposing closes it. Throws when it cannot run here. */
export async function startBrowser(): Promise<AsyncDisposable & { browser: Browser }> {
  await using starting = new AsyncDisposableStack()
  const directory = await mkdtemp(join(tmpdir(), 'postern-browser-'))
  starting.defer(() => rm(directory, { recursive: true, force: true }))
  const browser = await launchBrowser(await unpackBrowser(directory))
  starting.defer(() => browser.close())
  const running = starting.move()
  return { browser, [Symbol.asyncDispose]: () => running.disposeAsync() }
}

/**
 * Launches an unpacked browser. It runs without a sandbox, since it must also run as root: it opens nothing but services
 * of this machine.
 */
export function launchBrowser(executablePath: string, { ownHosts = [] }: BrowserOptions = {}): Promise<Browser> {
  const rules = ownHosts.map((host) => `MAP ${host} 127.0.0.1`).join(',')
  const args = ['--no-sandbox', '--disable-dev-shm-usage', ...(rules === '' ? [] : [`--host-resolver-rules=${rules}`])]
  return playwright.launch({ executablePath, args, headless: true })
}

/**
 * Unpacks the browser into a directory, and returns its path. The package unpacks into the directory for temporary files,
 * and takes what is there already for its own.
 */
export async function unpackBrowser(directory: string): Promise<string> {
  const before = process.env.TMPDIR
  process.env.TMPDIR = directory
  try {
    return await chromium.executablePath()
  } finally {
    if (before === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = before
  }
}
