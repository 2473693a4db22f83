import { skipWithout } from './support/optional-tool.ts'
import { isPostfixThere } from './support/postfix.ts'
import { run } from './support/run.ts'

/*
 * Sends through a real Postfix, which delivers, refuses, delays and bounces. It runs in its own directory on loopback
 * and does not affect another Postfix on this machine.
 */

if (!(await isPostfixThere())) skipWithout('Postfix with root or sudo to start it', { judge: 'a real mail server' })
else {
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'vitest.postfix.config.ts', 'test/postfix']
  await run(process.execPath, vitest).catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}
