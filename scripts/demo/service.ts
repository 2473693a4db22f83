import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { initClient } from '@ts-rest/core'
import { z } from 'zod'
import { contract } from '../../contract/index.ts'

/** Milliseconds after which a step of the demo fails. */
export const patienceMs = 15_000

/** The reason why the demo cannot go on, as one line. */
export class DemoError extends Error {
  override name = 'DemoError'
}

export type Service = ReturnType<typeof clientOf>

/** Returns a typed client of the service at `baseUrl`, made from the contract. */
export function clientOf(baseUrl: string, key: string) {
  return initClient(contract, { baseUrl, baseHeaders: { authorization: `Bearer ${key}` } })
}

/** Throws DemoError when no service answers at `baseUrl`. */
export async function assertRunning(baseUrl: string): Promise<void> {
  try {
    await fetch(`${baseUrl}/healthz`)
  } catch (error) {
    throw new DemoError(
      `no service answers at ${baseUrl}; start it with "npm start" in another terminal, or set POSTERN_URL to where it runs`,
      { cause: error },
    )
  }
}

const created = z.object({ id: z.string(), key: z.string() })

export type KeyForOptions = {
  mode: 'test' | 'live'
  /** URL of the service. */
  baseUrl: string
  env: NodeJS.ProcessEnv
  undo: AsyncDisposableStack
}

/**
 * Returns the key in POSTERN_API_KEY, or creates one with the command line, as an operator would; `undo` revokes it.
 * Throws DemoError when the service does not know the new key, because it uses another database.
 */
export async function keyFor({ mode, baseUrl, env, undo }: KeyForOptions): Promise<string> {
  const given = env.POSTERN_API_KEY
  if (given) {
    if (mode === 'live' && !given.startsWith('postern_live_')) throw new DemoError('POSTERN_API_KEY must be a live key')
    return given
  }
  const output = await postern(['keys', 'create', '--mode', mode, '--name', 'npm run demo', '--json'])
  const { id, key } = created.parse(JSON.parse(output))
  undo.defer(async () => void (await postern(['keys', 'revoke', id])))
  const { status } = await fetch(`${baseUrl}/v1/event-types`, { headers: { authorization: `Bearer ${key}` } })
  if (status === 401) throw otherDatabase(baseUrl, env)
  return key
}

function otherDatabase(baseUrl: string, { DATABASE_URL, DATA_DIR }: NodeJS.ProcessEnv): DemoError {
  const setting = DATABASE_URL ? 'DATABASE_URL' : 'DATA_DIR'
  const where = DATABASE_URL || !DATA_DIR ? setting : `${setting} (${DATA_DIR})`
  return new DemoError(
    `the service at ${baseUrl} does not know a key that was just made in the database of ${where}: it has another; set ${setting} to that of the service, or PORT or POSTERN_URL to where the service with this ${setting} listens, or POSTERN_API_KEY to one of its keys`,
  )
}

async function postern(args: string[]): Promise<string> {
  const program = join(import.meta.dirname, '..', '..', 'server', 'cli', 'postern.ts')
  try {
    return (await promisify(execFile)(process.execPath, [program, ...args])).stdout
  } catch (error) {
    const told = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error)
    throw new DemoError(`no key could be made: ${told}; or set POSTERN_API_KEY to one`, { cause: error })
  }
}

const refusal = z.object({ error: z.object({ message: z.string() }) })

/** Returns the error for a refused request: `what` failed, and the message of the service. */
export function refused(what: string, response: { status: number; body: unknown }): DemoError {
  const parsed = refusal.safeParse(response.body)
  return new DemoError(`${what}: the service answered ${response.status}: ${parsed.data?.error.message ?? 'no reason'}`)
}
