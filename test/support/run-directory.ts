import { existsSync } from 'node:fs'
import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { startEmbeddedDatabase } from '../../server/database/embedded/start.ts'
import { scratchDirectories, scratchDirectory } from './scratch.ts'

const prefix = 'postern-test-'
/** A run that is younger may just be starting. */
const oldMs = 30 * 60_000

/** A directory for the files of this run: its database server, and what its processes tell each other. */
export async function createRunDirectory(): Promise<string> {
  const directory = await mkdtemp(join(scratchDirectory(), prefix))
  // The database server may run as another user, who must get to its files.
  await chmod(directory, 0o711)
  return directory
}

export function dataDirOf(runDirectory: string): string {
  return join(runDirectory, 'database')
}

/** Ends the servers of runs that were killed and removes their directories. */
export async function removeLeftoverRuns(): Promise<void> {
  for (const directory of await leftoverRuns()) {
    try {
      if (Date.now() - (await stat(directory)).birthtimeMs < oldMs) continue
      await endServerOf(directory)
      await rm(directory, { recursive: true, force: true })
    } catch {
      // In use, or another user's.
    }
  }
}

async function leftoverRuns(): Promise<string[]> {
  const found: string[] = []
  for (const parent of scratchDirectories()) {
    const names = await readdir(parent).catch(() => [])
    found.push(...names.filter((name) => name.startsWith(prefix)).map((name) => join(parent, name)))
  }
  return found
}

/** Takes over a server whose owner is gone and stops it. Throws where the owner lives. */
async function endServerOf(runDirectory: string): Promise<void> {
  if (!existsSync(dataDirOf(runDirectory))) return
  const server = await startEmbeddedDatabase({ dataDir: dataDirOf(runDirectory) })
  await server.stop()
}
