import { spawn } from 'node:child_process'

type Options = { env?: NodeJS.ProcessEnv; cwd?: string; quiet?: boolean }

/**
 * Runs a program to its end and returns its stdout. Shows its output unless `quiet`.
 *
 * Throws when it cannot be started or exits with another code than 0. The error includes its stderr when `quiet`.
 */
export function run(program: string, args: readonly string[], options: Options = {}): Promise<{ stdout: string }> {
  const { quiet = false, ...rest } = options
  const child = spawn(program, args, { ...rest, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk
    if (!quiet) process.stdout.write(chunk)
  })
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk
    if (!quiet) process.stderr.write(chunk)
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      if (code === 0) resolve({ stdout })
      else reject(new Error(`${program} ${args[0] ?? ''} ended with code ${code}${quiet ? `: ${stderr.trim()}` : ''}`))
    })
  })
}

/** Returns true when `program` exists and exits with code 0. */
export function isThere(program: string, ...args: readonly string[]): Promise<boolean> {
  return run(program, args, { quiet: true }).then(
    () => true,
    () => false,
  )
}
