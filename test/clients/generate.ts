import { mkdir, writeFile } from 'node:fs/promises'
import { createClient } from '@hey-api/openapi-ts'
import openapiTS, { astToString } from 'openapi-typescript'

/*
 * Makes the TypeScript clients of the published spec, into the ignored directory `generated`.
 */

const spec = new URL('../../openapi/openapi.json', import.meta.url)
const generated = new URL('generated/', import.meta.url)

export async function generateOpenapiTypescript(): Promise<void> {
  const directory = new URL('openapi-typescript/', generated)
  await mkdir(directory, { recursive: true })
  await writeFile(new URL('schema.ts', directory), astToString(await openapiTS(spec)))
}

export async function generateHeyApi(): Promise<void> {
  await createClient({
    input: spec.pathname,
    output: new URL('hey-api', generated).pathname,
    logs: { level: 'silent', file: false },
  })
}
