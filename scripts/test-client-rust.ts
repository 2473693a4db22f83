import { cp, mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { startLiveService } from './support/live-service.ts'
import { skipWithout } from './support/optional-tool.ts'
import { findPython, programOf, virtualEnvironment } from './support/python.ts'
import { isThere, run } from './support/run.ts'

/*
 * Generates a Rust client from the published spec with openapi-generator, builds it, creates a webhook, sends
 * emails and reads events with it on a running service. The generator comes from PyPI, with the Java it needs.
 */

const files = 'test/clients/rust'
/** Kept between runs, with the build output of cargo. */
const project = resolve('node_modules', '.cache', 'postern', 'rust-client')

async function testRustClient(python: string): Promise<void> {
  const environment = await virtualEnvironment(python, { name: 'rust', requirements: `${files}/requirements.txt` })
  const client = join(project, 'postern_client')
  await rm(client, { recursive: true, force: true })
  await mkdir(project, { recursive: true })
  await cp(files, project, { recursive: true })
  const options = ['-g', 'rust', '-i', 'openapi/openapi.json', '-o', client]
  // The default version is that of the spec, which would change Cargo.lock with each release.
  const properties = ['--additional-properties', 'packageName=postern_client,packageVersion=0.0.0']
  // Quiet, because the generator prints a line for each file. Errors are shown anyway.
  await run(programOf(environment, 'openapi-generator-cli'), ['generate', ...options, ...properties], { quiet: true })
  await run('cargo', ['build', '--quiet', '--locked'], { cwd: project })
  await using service = await startLiveService()
  const env = { ...process.env, BASE_URL: service.url, API_KEY: service.testKey }
  await run('cargo', ['run', '--quiet', '--locked'], { cwd: project, env })
}

const judge = 'the Rust client'
const python = await findPython()
if (!(await isThere('cargo', '--version'))) skipWithout('Rust (cargo)', { judge })
else if (python === null) skipWithout('Python 3.10 or later with venv and pip', { judge })
else await testRustClient(python)
