import { isThere, run } from './run.ts'

/** Where every Debian has it. */
export const postfixProgram = '/usr/sbin/postfix'

/** Whether Postfix is installed and may be started: only root may. */
export async function isPostfixThere(): Promise<boolean> {
  if (!(await isThere('test', '-x', postfixProgram))) return false
  return isRoot() || isThere('sudo', '-n', 'true')
}

/** Runs a program to its end as root: by itself, or by sudo where that needs no password. Throws as `run` does. */
export function runAsRoot(program: string, args: readonly string[]): Promise<{ stdout: string }> {
  const [asRoot, ...rest] = rootCommand(program, args)
  return run(asRoot, rest, { quiet: true })
}

/** What runs a program as root: itself, or sudo. */
export function rootCommand(program: string, args: readonly string[]): [string, ...string[]] {
  return isRoot() ? [program, ...args] : ['sudo', '-n', program, ...args]
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}
