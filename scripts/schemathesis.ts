import { join, resolve } from 'node:path'
import { startLiveService } from './support/live-service.ts'
import { skipWithout } from './support/optional-tool.ts'
import { findPython, programOf, virtualEnvironment } from './support/python.ts'
import { run } from './support/run.ts'

/*
 * Tests a running service against its published spec with Schemathesis: all checks and phases, including links.
 * Arguments are passed on: `npm run test:schemathesis -- --max-examples 200`.
 */

const files = resolve('test/schemathesis')

async function judge(python: string): Promise<void> {
  const cwd = await virtualEnvironment(python, { name: 'schemathesis', requirements: join(files, 'requirements.txt') })
  await using service = await startLiveService()
  const config = ['--config-file', join(files, 'schemathesis.toml')]
  // All checks run by default. `--checks all` would also enable checks that the file disables for one path.
  const options = process.argv.slice(2)
  const keys = { API_KEY: service.apiKey, TEST_KEY: service.testKey }
  const env = { ...process.env, ...keys, HOOKS: join(files, 'hooks.py') }
  // Its data between runs stays in the cache, beside its programs.
  await run(programOf(cwd, 'schemathesis'), [...config, 'run', ...options, `${service.url}/openapi.json`], { env, cwd })
}

const python = await findPython()
if (python === null) skipWithout('Python 3.10 or later with venv and pip', { judge: 'Schemathesis' })
else {
  await judge(python).catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}
