/**
 * A process that owns the embedded database of the directory given, for tests that kill it. Prints
 * the connection string, then waits for the end of its input.
 */
import { startEmbeddedDatabase } from '../../server/database/embedded/start.ts'

const dataDir = process.argv[2]
if (dataDir === undefined) throw new Error('usage: embedded-owner.ts <directory>')

process.on('SIGINT', () => console.log('interrupted'))
await using database = await startEmbeddedDatabase({ dataDir })
console.log(database.connectionString)
await new Promise((resolve) => process.stdin.resume().once('end', resolve))
