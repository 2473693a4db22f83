import { vi } from 'vitest'
import { contract } from '../../contract/index.ts'
import { patienceMs } from './patience.ts'
import type { TestService } from './service.ts'

type File = { audienceId: string; fileName: string; csv: string }

/** Imports a file. Returns the id of the import when all its rows are done. */
export async function importCsv(
  { client }: Pick<TestService, 'client'>,
  { audienceId, fileName, csv }: File,
): Promise<string> {
  const query = new URLSearchParams({ audienceId, fileName })
  const sent = await client.send('POST', `/v1/imports?${query}`, { raw: csv, headers: { 'content-type': 'text/csv' } })
  const { id } = sent.body as { id: string }
  return vi.waitFor(
    async () => {
      const { status } = await client.succeed(contract.imports.get, { params: { id } })
      if (status !== 'completed') throw new Error(`the import is ${status}`)
      return id
    },
    { timeout: patienceMs },
  )
}
