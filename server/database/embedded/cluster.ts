import { randomBytes } from 'node:crypto'
import { chown, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../lib/error-codes.ts'
import { OperatorError } from '../../shared/errors.ts'
import type { Binaries } from './binaries.ts'
import { type RunAs, runProgram } from './run.ts'

/** The files of the embedded PostgreSQL in a data directory. */
export type Cluster = {
  /** The data directory of PostgreSQL itself. */
  directory: string
  /** The same directory, as PostgreSQL gets it on its command line. */
  argument: string
  user: string
  password: string
}

const user = 'postern'

/** The user that PostgreSQL runs as when this process is root: PostgreSQL refuses to run as root. */
const unprivilegedUser: RunAs = { uid: 65534, gid: 65534 }

/** Returns the directory that contains all files of the embedded database. */
export function rootOf(dataDir: string): string {
  return join(dataDir, 'postgres')
}

/**
 * Returns the user that PostgreSQL runs as. Undefined: the user of this process. If that is root: the owner of the
 * existing files, or user id 65534.
 */
export async function chooseRunAs(dataDir: string): Promise<RunAs | undefined> {
  const owner = await stat(rootOf(dataDir)).catch(() => undefined)
  const ownUid = process.getuid?.()
  if (ownUid === 0)
    return owner === undefined || owner.uid === 0 ? unprivilegedUser : { uid: owner.uid, gid: owner.gid }
  if (owner !== undefined && owner.uid !== ownUid) {
    throw new OperatorError(
      `${rootOf(dataDir)} belongs to the user id ${owner.uid}, not to this one (${ownUid}); start as the user who started it first (root, for 65534), or set DATA_DIR to another directory`,
    )
  }
  return undefined
}

/** Returns the existing cluster. Null: there is none. */
export async function readCluster(dataDir: string, runAs: RunAs | undefined): Promise<Cluster | null> {
  const root = rootOf(dataDir)
  try {
    const password = (await readFile(join(root, 'password'), 'utf8')).trim()
    return { ...placeOf(root, runAs), user, password }
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null
    throw error
  }
}

/**
 * Creates the files of a new server: UTF-8, byte-wise order, and a random password that every connection needs. They
 * appear all at once: what a crash left half done is created again.
 */
export async function createCluster(options: {
  dataDir: string
  binaries: Binaries
  runAs: RunAs | undefined
  onStart: (() => void) | undefined
}): Promise<Cluster> {
  const { dataDir, binaries, runAs, onStart } = options
  const half = `${rootOf(dataDir)}.new`
  await rm(half, { recursive: true, force: true })
  const password = randomBytes(24).toString('base64url')
  const { directory, argument } = placeOf(half, runAs)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await writeFile(join(half, 'password'), `${password}\n`, { mode: 0o600 })
  if (runAs !== undefined) {
    for (const path of [half, directory, join(half, 'password')]) await chown(path, runAs.uid, runAs.gid)
  }
  const { code, lines } = await runProgram({
    path: binaries.initdb,
    args: [
      `--pgdata=${argument}`,
      `--username=${user}`,
      `--pwfile=${argument}/../password`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--no-instructions',
    ],
    cwd: directory,
    runAs,
    onStart,
  })
  if (code !== 0) {
    throw new OperatorError(
      `the embedded database could not be created in ${rootOf(dataDir)}: ${lines.slice(-3).join(' ')}`,
    )
  }
  await rename(half, rootOf(dataDir))
  return { ...placeOf(rootOf(dataDir), runAs), user, password }
}

/** Throws OperatorError when the files were created by another major version of PostgreSQL. */
export async function assertVersion(cluster: Cluster, binaries: Binaries): Promise<void> {
  const found = (await readFile(join(cluster.directory, 'PG_VERSION'), 'utf8')).trim()
  if (found === String(binaries.majorVersion)) return
  throw new OperatorError(
    `${cluster.directory} was made by PostgreSQL ${found}, and this version of Postern brings PostgreSQL ${binaries.majorVersion}; start the version of Postern that made it, or move the data with pg_dump to a PostgreSQL of your own and set DATABASE_URL`,
  )
}

/**
 * Returns where PostgreSQL finds its files. If this process is root, PostgreSQL runs as another user, who cannot enter
 * a directory below `/root` by its path, but can stay in the directory it was started in. So on Linux it gets that one.
 */
function placeOf(root: string, runAs: RunAs | undefined): Pick<Cluster, 'directory' | 'argument'> {
  const directory = join(root, 'data')
  const argument = runAs !== undefined && process.platform === 'linux' ? '/proc/self/cwd' : directory
  return { directory, argument }
}
