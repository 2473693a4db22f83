import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** The program that opens an address in the browser of a person. */
const openers: Partial<Record<NodeJS.Platform, string>> = { darwin: 'open', win32: 'explorer.exe' }

export type Opening = {
  /** False: there is no terminal, and nothing is opened. */
  isTerminal: boolean
  /** Default: that of this machine. */
  platform?: NodeJS.Platform
  env: NodeJS.ProcessEnv
}

/** Opens an address in the browser. Returns false where that is not possible; the address has been printed anyway. */
export async function openInBrowser(url: string, { isTerminal, platform, env }: Opening): Promise<boolean> {
  if (!isTerminal) return false
  const opener = spawn(openers[platform ?? process.platform] ?? 'xdg-open', [url], {
    stdio: 'ignore',
    detached: true,
    env,
  })
  try {
    await once(opener, 'spawn')
  } catch {
    return false
  }
  opener.unref()
  return true
}
