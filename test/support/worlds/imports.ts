import type { CreateImport, Import } from '../../../contract/imports.ts'
import type { Mode } from '../../../contract/mode.ts'
import { createImportService } from '../../../server/imports/service.ts'
import { type ImportWorkerOptions, startImportWorker } from '../../../server/imports/worker.ts'
import { noConfirmations } from '../no-confirmations.ts'
import { patienceMs } from '../patience.ts'
import { live, testing } from '../scope.ts'
import { createWorld } from './audiences.ts'

export type ImportWorld = Awaited<ReturnType<typeof createImportWorld>>

/** People, lists and imports over a database of their own. */
export async function createImportWorld() {
  const world = await createWorld()
  const { db, clock, audiences, account } = world
  const imports = createImportService({ clock, audiences, wake: () => undefined })
  const faults: unknown[] = []
  const logger = { info: () => undefined, error: (fault: unknown) => void faults.push(fault) }

  function startWorker(options: Partial<ImportWorkerOptions> = {}) {
    // Events wait for a fan-out, which these tests do not have.
    const quiet = { append: async () => [] }
    const means = { db, clock, logger, outbox: quiet, confirmations: noConfirmations }
    return startImportWorker({ ...means, pollIntervalMs: 20, ...options })
  }

  const scopeOf = (mode: Mode = 'live', accountId = account) => (mode === 'live' ? live : testing)(accountId)

  /** Stores a file, in pieces of so many bytes. */
  async function upload(
    file: string | Buffer,
    options: Omit<CreateImport, 'audienceId'> & { audienceId?: string; mode?: Mode; pieceBytes?: number } = {},
  ): Promise<Import> {
    const { mode, pieceBytes = 65_536, audienceId, ...rest } = options
    const list = audienceId ?? (await audiences.create(db, live(account), { name: 'News' })).id
    const bytes = Buffer.from(file)
    async function* pieces() {
      for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
    }
    return imports.create(db, scopeOf(mode), { audienceId: list, ...rest }, pieces())
  }

  /** Waits until an import has ended. */
  async function ended(id: string, mode: Mode = 'live'): Promise<Import> {
    const since = performance.now()
    for (;;) {
      const found = await imports.get(db, scopeOf(mode), id)
      if (found.endedAt !== null) return found
      if (performance.now() - since > patienceMs) {
        throw new Error(`the import has not ended: ${JSON.stringify(found)} ${faults.map(String)}`)
      }
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }

  /** Stores a file and has it read. */
  async function run(...given: Parameters<typeof upload>): Promise<Import> {
    const { id, mode } = await upload(...given)
    const worker = startWorker({ batchRows: 3 })
    const found = await ended(id, mode)
    await worker.stop()
    return found
  }

  async function failedRows(id: string, mode: Mode = 'live'): Promise<string[]> {
    const pages = await imports.failedRows(db, scopeOf(mode), id)
    let text = ''
    for await (const page of pages) text += page
    return text.trimEnd().split('\r\n')
  }

  async function people(audienceId: string) {
    const { data } = await world.contacts.list(db, account, audienceId, { limit: 100 })
    return data
      .map(({ email, firstName, lastName, status, properties }) => ({ email, firstName, lastName, status, properties }))
      .toReversed()
  }

  return { ...world, imports, faults, startWorker, upload, ended, run, failedRows, people, scopeOf }
}
