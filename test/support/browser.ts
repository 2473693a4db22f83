import { access, mkdtemp, rename, rm } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { describe, inject } from 'vitest'
import { type BrowserOptions, browserRunsHere, launchBrowser, unpackBrowser } from '../../scripts/support/browser.ts'

export type TestBrowser = AsyncDisposable & { browser: Browser }

/**
 * A Chromium that comes with the dev dependencies (Linux x64 only), unpacked once for a run.
 *
 * Throws when it cannot run here, and says why.
 */
export async function startBrowser(options: BrowserOptions = {}): Promise<TestBrowser> {
  const executablePath = await unpackOnce(join(inject('runDirectory'), 'browser'))
  const browser = await launchBrowser(executablePath, options)
  return { browser, [Symbol.asyncDispose]: () => browser.close() }
}

/**
 * A suite of tests that need the browser. Elsewhere they are skipped, and the title says why.
 *
 * @param options.timeout Milliseconds for each test.
 */
export function describeInBrowser(name: string, options: { timeout: number }, suite: () => void): void {
  const why = `skipped: the browser of the tests runs on Linux x64 only, this is ${platform()} ${arch()}`
  describe.runIf(browserRunsHere)(browserRunsHere ? name : `${name} (${why})`, options, suite)
}

/** Unpacks the browser into a directory, whole or not at all, unless another test file has. Returns its path. */
async function unpackOnce(directory: string): Promise<string> {
  const file = join(directory, 'chromium')
  if (await isThere(file)) return file
  const own = await mkdtemp(`${directory}-`)
  await unpackBrowser(own)
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
