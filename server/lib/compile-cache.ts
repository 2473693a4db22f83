import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

/** Not Node's default, which lies where other users may write. */
export const compileCacheFolder = join(import.meta.dirname, '../../node_modules/.cache/node-compile')

/**
 * Has Node keep what it compiles from now on, for the next process of the same files: that one needs a quarter less
 * processor time to start. Does nothing where the folder cannot be written.
 *
 * Source: https://nodejs.org/api/module.html#module-compile-cache
 */
export function keepCompiled(): void {
  enableCompileCache(compileCacheFolder)
}
