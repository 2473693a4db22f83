import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/*
 * A use case reads as a use case: its service says what happens in which transaction, and the SQL stands in a module
 * beside it.
 */

const sqlText = /\bsql(<[^`]*>)?`|\.(selectFrom|insertInto|updateTable|deleteFrom|replaceInto|mergeInto)\(/

test('a service has no SQL of its own', () => {
  const services = globSync('server/**/{service,*-service}.ts')
  expect(services.length).toBeGreaterThan(20)
  expect(services.filter((file) => sqlText.test(readFileSync(file, 'utf8')))).toEqual([])
})

test.each(['await sql`SELECT 1`.execute(trx)', 'sql<{ id: string }>`SELECT id`', "trx\n  .insertInto('emails')\n"])(
  'the SQL of a service is found in %s',
  (source) => {
    expect(sqlText.test(source)).toBe(true)
  },
)
