import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runNode } from '../../main/service-process.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { deadUrl } from '../../support/fixtures.ts'
import { encryptionKey } from '../../support/service.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

/** Returns the OpenTelemetry packages that a service loads, but for the types and no-ops that prom-client brings. */
async function loadedWith(env: Record<string, string>): Promise<string[]> {
  const { stdout, stderr, exitCode } = await runNode([fileURLToPath(import.meta.resolve('./loaded-modules.ts'))], {
    PORT: '0',
    DATABASE_URL: database.connectionString,
    ENCRYPTION_KEY: encryptionKey.toString('base64'),
    ...env,
  })
  if (exitCode !== 0) throw new Error(stderr)
  const packages = stdout.split('\n').flatMap((path) => /@opentelemetry\/[\w-]+/.exec(path) ?? [])
  return [...new Set(packages)].filter((name) => name !== '@opentelemetry/api').sort()
}

test('what traces are made with is not loaded where there are none', async () => {
  expect(await loadedWith({ OTEL_SERVICE_NAME: 'mail', OTEL_TRACES_SAMPLER: 'always_on' })).toEqual([])
})

test('what traces are made with is loaded with the address of a collector', async () => {
  expect(await loadedWith({ OTEL_EXPORTER_OTLP_ENDPOINT: deadUrl })).toContain('@opentelemetry/sdk-trace')
})
