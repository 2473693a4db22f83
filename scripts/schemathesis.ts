import { startLiveService } from './support/live-service.ts'
import { skipWithout } from './support/optional-tool.ts'
import { findPython, programOf, virtualEnvironment } from './support/python.ts'
import { run } from './support/run.ts'

/*
 * Lets Schemathesis judge a running service by the spec it publishes: every check, every phase,
 * walking the links. Arguments are handed on: `npm run test:schemathesis -- --max-examples 200`.
 */

const files = 'test/schemathesis'
const maxSeconds = '240'

async function judge(python: string): Promise<void> {
  const environment = await virtualEnvironment(python, {
    name: 'schemathesis',
    requirements: `${files}/requirements.txt`,
  })
  await using service = await startLiveService()
  const config = ['--config-file', `${files}/schemathesis.toml`]
  const args = [
    'run',
    '--checks',
    'all',
    '--max-time',
    maxSeconds,
    ...process.argv.slice(2),
    `${service.url}/openapi.json`,
  ]
  const env = { ...process.env, API_KEY: service.apiKey }
  await run(programOf(environment, 'schemathesis'), [...config, ...args], { env }).catch((error: Error) => {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  })
}

const python = await findPython()
if (python === null) skipWithout('Python 3.10 or later with venv and pip')
else await judge(python)
