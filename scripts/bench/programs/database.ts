import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { startEmbeddedDatabase } from '../../../server/database/embedded/start.ts'
import { handler, serve } from './serve.ts'

/*
 * Runs an embedded PostgreSQL in a temporary directory. Its settings are those of the service, overridden by the first
 * argument (JSON). Its log goes to the file in the second argument, if given.
 */

const settings = z.record(z.string(), z.string()).parse(JSON.parse(process.argv[2] ?? '{}'))
const logFile = process.argv[3]
const log = logFile === undefined ? null : createWriteStream(logFile)
const stopping = Promise.withResolvers<void>()
// Not `once`: `leash.ts` may send the signal too.
process.on('SIGTERM', () => stopping.resolve())

const dataDir = await mkdtemp(join(tmpdir(), 'postern-bench-'))
try {
  await using database = await startEmbeddedDatabase({
    dataDir,
    settings,
    onLog: (line) => log?.write(`${line}\n`),
  })
  serve({ connectionString: handler(z.null(), () => database.connectionString) })
  await stopping.promise
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
process.exit()
