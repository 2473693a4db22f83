import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isThere, run } from './run.ts'

const bin = process.platform === 'win32' ? 'Scripts' : 'bin'

/** Returns the path of a program in a virtual environment. */
export function programOf(environment: string, name: string): string {
  return join(environment, bin, name)
}

/** Returns the name of a Python, 3.10 or later, that can create virtual environments with pip, or null. */
export async function findPython(): Promise<string | null> {
  for (const name of ['python3', 'python']) {
    if (await isThere(name, '-c', 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))')) return name
  }
  return null
}

/**
 * Creates a virtual environment with the packages of a requirements file, which is kept between runs in the cache of
 * node_modules. Returns its absolute path.
 */
export async function virtualEnvironment(python: string, options: { name: string; requirements: string }) {
  const directory = resolve('node_modules', '.cache', 'postern', options.name)
  await mkdir(directory, { recursive: true })
  await run(python, ['-m', 'venv', directory], { quiet: true })
  const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', options.requirements]
  await run(programOf(directory, 'python'), install)
  return directory
}
