import { type RawBuilder, sql } from 'kysely'
import { beginsWith } from '../database/prefixes.ts'
import { addressPrefixes } from '../message/address.ts'

/** Most people that a search looks at for each of address, name and last name. */
const maxMatches = 500

/** First and last name, with an index. */
const name = sql<string>`lower(coalesce(first_name || ' ', '') || coalesce(last_name, '')) COLLATE "C"`
const lastName = sql<string>`lower(last_name) COLLATE "C"`
const address = sql<string>`email_key`

/**
 * Returns a query for the `id` of the people of an account whose address, name or last name begins with `search`. Letter
 * case does not matter; but where the locale of the database knows ASCII only, other capital letters of a name are found
 * only at the beginning of words, or as they are typed. Each person is found at most once. Of more than 500 people with
 * such an address, such a name or such a last name, it finds the first 500 by alphabet.
 */
export function searchPeople(accountId: string, search: string): RawBuilder<{ id: string }> {
  const text = search.trim().replace(/\s+/g, ' ')
  const matches = [
    ...addressPrefixes(text).map((prefix) => matchesOf(address, accountId, sql`${prefix}::text`)),
    ...spellings(text).flatMap((prefix) => [
      matchesOf(name, accountId, sql`lower(${prefix}::text)`),
      matchesOf(lastName, accountId, sql`lower(${prefix}::text)`),
    ]),
  ]
  return sql`${sql.join(matches, sql` UNION `)}`
}

/** Returns the forms of a text that differ where only letters of ASCII have a lower case. */
function spellings(text: string): string[] {
  const lower = text.toLowerCase()
  const capitalised = lower.replace(/(?<=^|[ -])[^ -]/gu, (letter) => letter.toUpperCase())
  const inAscii = (form: string) => form.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
  return [...new Set([text, lower, capitalised].map(inAscii))]
}

function matchesOf(key: RawBuilder<string>, accountId: string, prefix: RawBuilder<string>): RawBuilder<{ id: string }> {
  // A subquery, so that the planner uses the index even without statistics, instead of sorting.
  return sql`(
    SELECT id FROM subscribers WHERE ${beginsWith(key, accountId, prefix)}
    ORDER BY account_id, ${key} LIMIT (SELECT ${maxMatches}::bigint)
  )`
}
