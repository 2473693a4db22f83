import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { startEmbeddedDatabase } from '../../../server/database/embedded.ts'
import { handler, serve } from './serve.ts'

/*
 * An embedded PostgreSQL in a directory of its own, which goes with it. Its settings are PostgreSQL's
 * defaults but for those in the first argument, JSON.
 */

const settings = z.record(z.string(), z.string()).parse(JSON.parse(process.argv[2] ?? '{}'))
const stopping = Promise.withResolvers<void>()
process.once('SIGTERM', () => stopping.resolve())

const dataDir = await mkdtemp(join(tmpdir(), 'postern-bench-'))
try {
  await using database = await startEmbeddedDatabase({ dataDir, settings })
  serve({ connectionString: handler(z.null(), () => database.connectionString) })
  await stopping.promise
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
process.exit()
