import { compileCacheFolder } from '../../server/lib/compile-cache.ts'

/**
 * Environment that has Node keep what it compiled, for the processes of the tests and those that they start: such a
 * start costs half. A changed file is compiled anew. Source: https://nodejs.org/api/module.html#module-compile-cache
 */
export const compileCache = { NODE_COMPILE_CACHE: compileCacheFolder }
