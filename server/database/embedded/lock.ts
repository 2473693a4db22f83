import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { messageOf } from '../../lib/error-codes.ts'
import { OperatorError } from '../../shared/errors.ts'

const ownerSchema = z.object({ pid: z.int().positive(), purpose: z.enum(['service', 'command']) })

/** The process that uses a data directory: the service as long as it runs, or a command for a moment. */
export type LockOwner = z.infer<typeof ownerSchema>

export type DataDirLock = {
  /** Releases the directory. Calling it again does nothing. */
  release(): void
}

const sqliteBusy = 5

/**
 * Locks the data directory for this process. Returns null if another process has locked it. The operating system
 * releases the lock when the process ends, however it ends: there are no stale locks.
 *
 * The lock is that of an empty SQLite file, since Node has no other access to the operating system's file locks.
 */
export async function tryLockDataDir(dataDir: string, purpose: LockOwner['purpose']): Promise<DataDirLock | null> {
  const path = lockFileOf(dataDir)
  const file = openLockFile(path)
  try {
    file.exec('BEGIN EXCLUSIVE')
    const owner: LockOwner = { pid: process.pid, purpose }
    await writeFile(ownerPath(dataDir), JSON.stringify(owner), { mode: 0o600 })
  } catch (error) {
    file.close()
    if (isBusy(error)) return null
    throw lockError(path, error)
  }
  return {
    release() {
      if (file.isOpen) file.close()
    },
  }
}

/** Returns the last owner of the lock. Null: not known. */
export async function readLockOwner(dataDir: string): Promise<LockOwner | null> {
  try {
    return ownerSchema.parse(JSON.parse(await readFile(ownerPath(dataDir), 'utf8')))
  } catch {
    return null
  }
}

/** Returns the path of the locked file. The file stays when the lock is released. */
export function lockFileOf(dataDir: string): string {
  return join(dataDir, 'lock')
}

function ownerPath(dataDir: string): string {
  return join(dataDir, 'lock-owner.json')
}

function openLockFile(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { timeout: 0 })
  } catch (error) {
    throw lockError(path, error)
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy
}

function lockError(path: string, error: unknown): OperatorError {
  return new OperatorError(
    `the data directory cannot be locked with ${path} (${messageOf(error)}); make it writable for this user, or set DATA_DIR to a directory on a local disk`,
    { cause: error },
  )
}
