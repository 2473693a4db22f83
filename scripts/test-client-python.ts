import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startLiveService } from './support/live-service.ts'
import { skipWithout } from './support/optional-tool.ts'
import { findPython, programOf, virtualEnvironment } from './support/python.ts'
import { run } from './support/run.ts'

/*
 * Generates a Python client from the published spec with openapi-python-client, and creates a
 * webhook and reads events with it on a running service.
 */

const files = 'test/clients/python'

async function testPythonClient(python: string): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'postern-python-'))
  try {
    const environment = await virtualEnvironment(python, { name: 'python', requirements: `${files}/requirements.txt` })
    const output = join(directory, 'client')
    const args = ['generate', '--path', 'openapi/openapi.json', '--config', `${files}/config.json`]
    await run(programOf(environment, 'openapi-python-client'), [...args, '--output-path', output, '--fail-on-warning'])
    await using service = await startLiveService()
    const env = { ...process.env, PYTHONPATH: output, BASE_URL: service.url, API_KEY: service.apiKey }
    await run(programOf(environment, 'python'), [`${files}/client.py`], { env })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const python = await findPython()
if (python === null) skipWithout('Python 3.10 or later with venv and pip', { judge: 'the Python client' })
else await testPythonClient(python)
