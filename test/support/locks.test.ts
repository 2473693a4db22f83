import { afterAll, beforeAll, expect, test } from 'vitest'
import { holdMonotonicClock } from './clock.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { untilSomebodyWaits } from './locks.ts'
import { patienceMs } from './patience.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('waiting for a lock that nobody waits for ends with what the sessions do instead', async () => {
  const clock = holdMonotonicClock()
  const waiting = untilSomebodyWaits(database.db, 'UPDATE')
  const refusal = expect(waiting).rejects.toThrow(/^0 of 1 sessions with "UPDATE" wait for a lock; there are: /)
  clock.advance(patienceMs + 1)
  await refusal
})
