import { isThere, run } from './run.ts'

/** The path of Postfix on Debian. */
export const postfixProgram = '/usr/sbin/postfix'

/** Returns true when Postfix is installed and can be started, which needs root or sudo without a password. */
export async function isPostfixThere(): Promise<boolean> {
  if (!(await isThere('test', '-x', postfixProgram))) return false
  return isRoot() || isThere('sudo', '-n', 'true')
}

/** Runs a program to its end as root, with sudo if needed. Throws as `run` does. */
export function runAsRoot(program: string, args: readonly string[]): Promise<{ stdout: string }> {
  const [asRoot, ...rest] = rootCommand(program, args)
  return run(asRoot, rest, { quiet: true })
}

/** Returns the command that runs a program as root: the program itself, or with sudo. */
export function rootCommand(program: string, args: readonly string[]): [string, ...string[]] {
  return isRoot() ? [program, ...args] : ['sudo', '-n', program, ...args]
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}
