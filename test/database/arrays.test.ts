import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { plainArray, textArrays } from '../../server/database/arrays.ts'
import { newId } from '../../server/shared/ids.ts'
import { createTestDatabase } from '../support/database.ts'

test('arrays are read as they were written: identifiers, numbers, times, and what is null', async () => {
  await using database = await createTestDatabase()
  const now = new Date('2026-11-22T07:00:00.123Z')
  const ids = [newId('event', now), null, newId('webhook', now)]
  const { rows } = await sql`
    SELECT ${plainArray(ids)}::text[] AS ids, ${plainArray([200, null, -1])}::int[] AS numbers,
      ${plainArray([now.toISOString()])}::timestamptz[] AS times, ${plainArray([])}::text[] AS none
  `.execute(database.db)
  expect(rows).toEqual([{ ids, numbers: [200, null, -1], times: [now], none: [] }])
})

test('texts from outside are read as they were written, and null and none', async () => {
  await using database = await createTestDatabase()
  const texts = [
    '',
    'NULL',
    null,
    '{"a,b"}',
    '\\x00',
    "'; DROP TABLE emails; --",
    'Größe 😀',
    '\u2028\n\t',
    // Longer than a slice, whose end lies inside a character.
    `x${'😀'.repeat(300_000)}`,
    'behind it',
  ]
  const { all, some, none } = await textArrays({ all: texts, some: ['a'], none: [] })
  const { rows } = await sql`
    SELECT ${all}::text[] AS all, ${some}::text[] AS some, ${none}::text[] AS none
  `.execute(database.db)
  expect(rows).toEqual([{ all: texts, some: ['a'], none: [] }])
})

test('others have their turn while large texts are written', async () => {
  const order: string[] = []
  setImmediate(() => order.push('another'))
  await textArrays({ html: Array.from({ length: 100 }, () => 'Größe 😀'.repeat(40_000)) })
  order.push('written')
  expect(order).toEqual(['another', 'written'])
})
