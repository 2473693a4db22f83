import { execFile } from 'node:child_process'
import { chown, mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { hasCode, messageOf } from '../../../server/lib/error-codes.ts'

/** A file system of a few megabytes, in memory. */
export type SmallDisk = AsyncDisposable & {
  /** An empty directory on it, of the user `uid`. */
  directory: string
  /** Takes all the room there is. */
  fill(): Promise<void>
  /** Gives back what was taken. */
  clear(): Promise<void>
}

const run = promisify(execFile)
const chunkBytes = [1_048_576, 4_096]

/** Mounts one at `mountPoint`, which is made. Throws where this user may not mount. */
export async function mountSmallDisk(options: {
  mountPoint: string
  uid: number
  megabytes: number
}): Promise<SmallDisk> {
  const { mountPoint, uid, megabytes } = options
  await mkdir(mountPoint, { recursive: true })
  await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0755`, 'postern-fault', mountPoint])
  const directory = join(mountPoint, 'data')
  await mkdir(directory, { mode: 0o700 })
  await chown(directory, uid, -1)
  const filler = join(mountPoint, 'filler')
  return {
    directory,
    async fill() {
      await using file = await open(filler, 'a')
      for (const bytes of chunkBytes) await writeUntilFull(file, Buffer.alloc(bytes))
    },
    clear: () => rm(filler, { force: true }),
    async [Symbol.asyncDispose]() {
      await run('umount', [mountPoint])
    },
  }
}

async function writeUntilFull(file: { write(chunk: Buffer): Promise<unknown> }, chunk: Buffer): Promise<void> {
  try {
    for (;;) await file.write(chunk)
  } catch (error) {
    if (!hasCode(error, 'ENOSPC')) throw error
  }
}

/** Why there can be no small disk here; null where there can. */
export async function whyNoSmallDisk(): Promise<string | null> {
  const directory = await mkdtemp(join(tmpdir(), 'postern-mount-'))
  try {
    await using _disk = await mountSmallDisk({ mountPoint: directory, uid: process.getuid?.() ?? 0, megabytes: 1 })
    return null
  } catch (error) {
    return messageOf(error).trim().split('\n').at(-1) ?? 'mount failed'
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
