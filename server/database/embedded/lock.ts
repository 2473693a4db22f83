import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { messageOf } from '../../lib/error-codes.ts'
import { OperatorError } from '../../shared/errors.ts'

const ownerSchema = z.object({ pid: z.int().positive(), purpose: z.enum(['service', 'command']) })

/** Who uses a data directory: the service for as long as it runs, or a command for a moment. */
export type LockOwner = z.infer<typeof ownerSchema>

export type DataDirLock = {
  /** Gives the directory back. Calling it again does nothing. */
  release(): void
}

const sqliteBusy = 5

/**
 * Takes the data directory for this process, or answers null when another one has it. The operating
 * system gives it back when the process ends, however it ends: there are no stale locks.
 *
 * The lock is that of an empty SQLite file, because Node has no other access to the file locks of the
 * operating system.
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

/** Who took the directory last, as far as it can be told. */
export async function readLockOwner(dataDir: string): Promise<LockOwner | null> {
  try {
    return ownerSchema.parse(JSON.parse(await readFile(ownerPath(dataDir), 'utf8')))
  } catch {
    return null
  }
}

/** The file that is locked; it stays when the lock is given back. */
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
