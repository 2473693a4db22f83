import { type Queue, startQueue } from '../../server/queue/queue.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'

/** A queue on a database of its own, that does no work by itself. */
export async function startTestQueue(): Promise<{ database: TestDatabase; queue: Queue; stop(): Promise<void> }> {
  const database = await createTestDatabase()
  const onError = (error: Error) => {
    throw error
  }
  const queue = await startQueue({ connectionString: database.connectionString, works: false, onError })
  return {
    database,
    queue,
    async stop() {
      await queue.stop()
      await database.drop()
    },
  }
}
