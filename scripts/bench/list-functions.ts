import { sql } from 'kysely'
import type { Db } from '../../server/database/connection.ts'

/*
 * The functions that the statements of `list-rows.ts` use, in the database.
 */

/** Accounts beside the large one. Together they have a tenth of its rows. */
export const smallAccounts = 999
/** Days that the rows spread over, until now. */
export const days = 30
/** Days that requests are logged for. */
export const logDays = 7

type Shape = {
  firstMs: number
  stepMs: number
  total: number
  large: { accountId: string }
  small: readonly { accountId: string; webhookIds: readonly string[] }[]
  webhookId: string
}

/**
 * Creates the functions that the statements use. `bench_id(prefix, i)` is the identifier of row `i`,
 * `bench_recent_id(prefix, i)` is one with a time of the last days, and `bench_rows(from, to)` are the rows with their
 * account: every eleventh is one of a small account. `k` counts the rows of the large account; it is null in others.
 */
export async function createFunctions(
  db: Db,
  { firstMs, stepMs, total, large, small, webhookId }: Shape,
): Promise<void> {
  const recentStepMs = (stepMs * logDays) / days
  const lastMs = firstMs + total * stepMs
  const time = [45, 40, 35, 30, 25, 20, 15, 10, 5, 0].map((shift) => `bench_digit(ms, ${shift})`).join(' || ')
  const accounts = [large.accountId, ...small.map(({ accountId }) => accountId)]
  const webhooks = [webhookId, ...small.map(({ webhookIds }) => webhookIds[0] ?? '')]
  await sql`
    CREATE TABLE bench_accounts AS
    SELECT (number - 1)::integer AS number, account_id COLLATE "C" AS account_id, webhook_id COLLATE "C" AS webhook_id
    FROM unnest(${accounts}::text[], ${webhooks}::text[]) WITH ORDINALITY AS a (account_id, webhook_id, number)
  `.execute(db)
  await sql`CREATE UNIQUE INDEX ON bench_accounts (number)`.execute(db)
  await sql
    .raw(`
    CREATE FUNCTION bench_ms(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
      SELECT (${firstMs} + i * ${stepMs}::float8)::bigint
    $$;
    CREATE FUNCTION bench_digit(ms bigint, shift integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
      SELECT substr('0123456789abcdefghjkmnpqrstvwxyz', ((ms >> shift) & 31)::integer + 1, 1)
    $$;
    -- Ten characters of time, the version of UUIDv7, the number of the row (hexadecimal digits are base32 too), and a
    -- digit that is spread evenly over people, who are every tenth row.
    CREATE FUNCTION bench_id_at(prefix text, ms bigint, i bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
      SELECT prefix || '_' || ${time} || 'e' || lpad(to_hex(i), 14, '0') || bench_digit(i / 10, 0)
    $$;
    CREATE FUNCTION bench_id(prefix text, i bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
      SELECT bench_id_at(prefix, bench_ms(i), i)
    $$;
    CREATE FUNCTION bench_recent_id(prefix text, i bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
      SELECT bench_id_at(prefix, (${lastMs} - (${total} - i) * ${recentStepMs}::float8)::bigint, i)
    $$;
    CREATE FUNCTION bench_at(i bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
      SELECT to_timestamp(bench_ms(i) / 1000.0)
    $$;
    CREATE FUNCTION bench_rows(first bigint, behind bigint)
    RETURNS TABLE (i bigint, k bigint, account_id text, webhook_id text, at timestamptz) LANGUAGE sql STABLE AS $$
      SELECT i, CASE WHEN number = 0 THEN i - i / 11 END, account_id, webhook_id, bench_at(i)
      FROM (
        SELECT i, CASE WHEN i % 11 = 10 THEN 1 + (i / 11) % ${smallAccounts} ELSE 0 END::integer AS account
        FROM generate_series(first, behind - 1) i
      ) r JOIN bench_accounts a ON a.number = r.account
    $$;
  `)
    .execute(db)
}
