import { sql } from 'kysely'
import type { Db } from '../../../server/database/connection.ts'

/** Returns a function that reads the events committed since its last call, in order, each as its type and data. */
export function createEmittedReader(db: Db): () => Promise<[type: string, data: unknown][]> {
  let lastSeen = ''
  return async () => {
    const rows = await db
      .selectFrom('events')
      .select(['id', 'type', sql<{ data: unknown }>`body::json`.as('body')])
      .where('id', '>', lastSeen)
      .orderBy('id')
      .execute()
    lastSeen = rows.at(-1)?.id ?? lastSeen
    return rows.map(({ type, body }) => [type, body.data])
  }
}
