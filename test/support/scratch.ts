import { accessSync, constants, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

/** In memory on Linux. */
const inMemory = '/dev/shm'
/** A whole run has written less than half of this at any time. */
const wantedBytes = 2 * 1024 ** 3

/**
 * The directory for what tests write and nobody reads afterwards: in memory where there is room, since PostgreSQL
 * creates a database many times as fast there as on a disk. Otherwise, and wherever `TMPDIR` is set, that of the system.
 */
export function scratchDirectory(): string {
  return process.env.TMPDIR === undefined && hasRoom() ? inMemory : tmpdir()
}

/** Every directory that `scratchDirectory()` can return: the room in memory may change between two runs. */
export function scratchDirectories(): string[] {
  return [...new Set([inMemory, tmpdir()])]
}

function hasRoom(): boolean {
  try {
    accessSync(inMemory, constants.W_OK | constants.X_OK)
    const { bavail, bsize } = statfsSync(inMemory)
    return bavail * bsize >= wantedBytes
  } catch {
    return false
  }
}
