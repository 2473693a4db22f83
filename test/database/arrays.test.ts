import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { plainArray } from '../../server/database/arrays.ts'
import { newId } from '../../server/ids.ts'
import { createTestDatabase } from '../support/database.ts'

it('are read as they were written: identifiers, numbers, times, and what is null', async () => {
  await using database = await createTestDatabase()
  const now = new Date('2026-11-22T07:00:00.123Z')
  const ids = [newId('event', now), null, newId('webhook', now)]
  const { rows } = await sql`
    SELECT ${plainArray(ids)}::text[] AS ids, ${plainArray([200, null, -1])}::int[] AS numbers,
      ${plainArray([now.toISOString()])}::timestamptz[] AS times, ${plainArray([])}::text[] AS none
  `.execute(database.db)
  expect(rows).toEqual([{ ids, numbers: [200, null, -1], times: [now], none: [] }])
})
