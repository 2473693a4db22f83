import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startLiveService } from './support/live-service.ts'
import { skipWithout } from './support/optional-tool.ts'
import { isThere, run } from './support/run.ts'

/*
 * Generates a Go client from the published spec with oapi-codegen, builds it, and creates a webhook
 * and reads events with it on a running service.
 */

const generator = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.1'

async function testGoClient(): Promise<void> {
  const cwd = await mkdtemp(join(tmpdir(), 'postern-go-'))
  try {
    await cp('test/clients/go', cwd, { recursive: true })
    const options = ['-generate', 'types,client', '-package', 'main', '-o', 'client.gen.go']
    await run('go', ['run', generator, ...options, resolve('openapi/openapi.json')], { cwd })
    await run('go', ['build', '-o', 'client', '.'], { cwd })
    await using service = await startLiveService()
    await run(join(cwd, 'client'), [], { env: { ...process.env, BASE_URL: service.url, API_KEY: service.apiKey } })
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
}

if (await isThere('go', 'version')) await testGoClient()
else skipWithout('Go', { judge: 'the Go client' })
