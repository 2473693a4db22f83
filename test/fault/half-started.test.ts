import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { startApp } from '../../server/app.ts'
import { createLogger } from '../../server/observability/logging.ts'
import { createTestDatabase } from '../support/database.ts'
import { configOf } from '../support/service.ts'

/*
 * A part that does not start takes down what was started before it: no timer goes on, and no connection
 * is left, for which dropping the database would throw.
 */

test.each([
  ['the queue', 'DROP FUNCTION pgboss.create_queue(text, jsonb)'],
  ['the workers', 'DROP TABLE pgboss.schedule'],
])('a start leaves nothing behind when %s cannot be started', async (_, damage) => {
  await using database = await createTestDatabase()
  await sql.raw(damage).execute(database.db)
  const logger = createLogger({ level: 'silent' })
  const timersBefore = runningTimers()
  await expect(startApp(configOf({}, database.connectionString), { logger })).rejects.toThrow(/does not exist/)
  expect(runningTimers()).toBeLessThanOrEqual(timersBefore)
})

function runningTimers(): number {
  return process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
}
