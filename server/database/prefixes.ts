import { type RawBuilder, sql } from 'kysely'

/**
 * Matches the rows of an account whose `key` begins with `prefix`, in bytes. `key` is a column or an expression with
 * the collation "C", and an index of the table begins with `account_id` and it: the condition reads nothing else.
 */
export function beginsWith(
  key: RawBuilder<string>,
  accountId: string,
  prefix: RawBuilder<string>,
): RawBuilder<boolean> {
  return sql`(account_id, ${key}) >= (${accountId}, ${prefix})
    AND (account_id, ${key}) < (${accountId}, ${prefix} || ${lastCharacter})`
}

/** Sorts after every character that text can have. */
const lastCharacter = '\u{10ffff}'
