import { createHash } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../../server/database/connection.ts'
import { firstIdAt } from '../../server/shared/ids.ts'
import type { World } from './lab.ts'
import { addTenants, settleDown } from './seed.ts'

/*
 * Writes the rows that lists read: those of one large account among many small ones. All are written by SQL, without
 * triggers and foreign keys, in the order of time. Bodies are small.
 *
 * Each list has values that most rows have, values that few have, and values that only the oldest rows have: reading
 * from the newest row on, those are found last.
 */

/** The parameters of requests for the lists of the large account. */
export type ListedAccount = {
  key: string
  webhookId: string
  /** An audience with everyone, and one with ten of the oldest people. */
  audienceId: string
  smallAudienceId: string
  campaignId: string
  smallCampaignId: string
  /** A time with half of the rows before it. */
  middle: Date
  /** The cursor of a page in the middle. */
  middleCursor: string
  /** An email and a subscriber from the middle. */
  emailId: string
  subscriberId: string
}

/** One pair of the metadata in all rows that have the value, as the API hashes it. */
const pairOf = (name: string, value: string) =>
  createHash('sha256')
    .update(JSON.stringify([name, value]))
    .digest('base64url')

/** Accounts beside the large one. Together they have a tenth of its rows. */
const smallAccounts = 999
/** Days that the rows spread over, until now. */
const days = 30
/** Rows of one statement. */
const chunkSize = 100_000
/** Of ten emails: one person, one suppression. */
const peopleShare = 10
/** Most webhooks of an account by default, and a usual number of keys. */
const webhookCount = 1_000

/**
 * Adds the accounts with their rows, and vacuums.
 *
 * @param count Emails, events and deliveries of the large account, each.
 */
export async function writeListedRows(
  world: World,
  count: number,
  progress: (text: string) => void,
): Promise<ListedAccount> {
  const url = (number: number) => `http://127.0.0.1:9/hooks/${number}`
  const [large, ...small] = await addTenants(world, [
    { urls: Array.from({ length: webhookCount }, (_, index) => url(index)) },
    ...Array.from({ length: smallAccounts }, () => ({ urls: [url(0)] })),
  ])
  const [webhookId] = large?.webhookIds ?? []
  if (large === undefined || webhookId === undefined) throw new Error('there is no large account')

  const until = Date.now()
  const firstMs = until - days * 86_400_000
  const total = Math.floor((count * 11) / 10)
  const stepMs = (until - firstMs) / total
  const { db } = world
  await db.connection().execute(async (connection) => {
    // Without triggers and foreign keys.
    await sql`SET session_replication_role = replica`.execute(connection)
    await createFunctions(connection, { firstMs, stepMs, large, small, webhookId })
    for (let from = 0; from < total; from += chunkSize) {
      const to = Math.min(from + chunkSize, total)
      for (const statement of statementsFor(from, to, count)) await statement.execute(connection)
      if (to % 1_000_000 < chunkSize) progress(`${to.toLocaleString('en')} of ${total.toLocaleString('en')} prepared`)
    }
    for (const statement of statementsOnce) await statement.execute(connection)
    await sql`RESET session_replication_role`.execute(connection)
  })
  progress('vacuuming')
  await settleDown(world)

  const { rows } = await sql<{ emailId: string; subscriberId: string; audienceId: string; smallAudienceId: string }>`
    SELECT bench_id('email', ${Math.floor(total / 2)}) AS "emailId", bench_id('aud', 0) AS "audienceId",
      bench_id('aud', 1) AS "smallAudienceId",
      (SELECT id FROM subscribers WHERE account_id = ${large.accountId} AND id > bench_id('sub', ${Math.floor(total / 2)})
        ORDER BY id LIMIT 1) AS "subscriberId"
  `.execute(db)
  const found = rows[0]
  if (found === undefined) throw new Error('there are no rows')
  const middle = new Date(firstMs + (until - firstMs) / 2)
  return {
    ...found,
    key: large.key,
    webhookId,
    campaignId: `cmp_${largeCampaign}`,
    smallCampaignId: `cmp_${smallCampaign}`,
    middle,
    middleCursor: firstIdAt('email', middle).slice('email_'.length),
  }
}

const largeCampaign = '01jqz4x7m8e5v9t2k6r3w0y1ab'
const smallCampaign = '01jqz4x7m8e5v9t2k6r3w0y1ac'

type Shape = {
  firstMs: number
  stepMs: number
  large: { accountId: string }
  small: readonly { accountId: string; webhookIds: readonly string[] }[]
  webhookId: string
}

/**
 * Creates the functions that the statements use. `bench_id(prefix, i)` is the identifier of row `i`, and
 * `bench_rows(from, to)` are the rows with their account: every eleventh is one of a small account. `k` counts the rows
 * of the large account; it is null in others.
 */
async function createFunctions(db: Db, { firstMs, stepMs, large, small, webhookId }: Shape): Promise<void> {
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
    -- Ten characters of time, then the version of UUIDv7, then the number of the row: hexadecimal digits are base32 too.
    CREATE FUNCTION bench_id(prefix text, i bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
      SELECT prefix || '_' || ${[45, 40, 35, 30, 25, 20, 15, 10, 5, 0].map((shift) => `bench_digit(bench_ms(i), ${shift})`).join(' || ')}
        || 'e' || lpad(to_hex(i), 15, '0')
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

/** The statements for the rows from `from` to before `to`. */
function statementsFor(from: number, to: number, count: number): RawBuilder<unknown>[] {
  const rows = sql`bench_rows(${sql.lit(from)}, ${sql.lit(to)})`
  // The same people are written to again and again, and one address gets a twentieth of all.
  const address = sql.raw(`CASE WHEN k BETWEEN 40 AND 49 THEN 'rare@example.com' WHEN k % 20 = 0 THEN 'log@example.com'
    ELSE 'person-' || (i * 7919) % ${Math.max(1, Math.floor(count / peopleShare))} || '@mail-' || i % 50 || '.example' END`)
  const status = sql`CASE WHEN k < 10 THEN 'validated' WHEN k < 20 THEN 'canceled' WHEN k % 1000 < 20 THEN 'bounced'
    WHEN k % 1000 < 25 THEN 'failed' WHEN k % 1000 < 30 THEN 'sent' WHEN k % 1000 = 30 THEN 'suppressed' ELSE 'delivered' END`
  const type = sql`CASE WHEN k < 5 THEN 'domain.deleted' WHEN k % 50 = 0 THEN 'contact.created' ELSE 'email.delivered' END`
  return [
    sql`
      INSERT INTO emails (id, account_id, mode, status, sender, subject, message_id, tags, metadata, campaign_id,
        created_at, updated_at, completed_at)
      SELECT bench_id('email', i), account_id, CASE WHEN k < 10 THEN 'test' ELSE 'live' END, ${status},
        'Shop <hello@shop.example>', 'Order ' || i, '<' || i || '@shop.example>',
        CASE WHEN k BETWEEN 20 AND 29 THEN '{rare}' WHEN k IS NULL THEN '{rare,welcome}' WHEN k % 10 < 9 THEN '{welcome}'
          ELSE '{}' END::text[],
        CASE WHEN k BETWEEN 30 AND 39 THEN '{"customer":"rare"}' WHEN k % 10 = 0 THEN '{"plan":"free"}' ELSE '{}' END::jsonb,
        CASE WHEN k BETWEEN 20 AND 29 THEN ${`cmp_${smallCampaign}`} WHEN k % 2 = 0 THEN ${`cmp_${largeCampaign}`} END,
        at, at, at
      FROM ${rows}`,
    sql`
      INSERT INTO email_metadata (account_id, pair, email_id)
      SELECT account_id, CASE WHEN k BETWEEN 30 AND 39 THEN ${pairOf('customer', 'rare')} ELSE ${pairOf('plan', 'free')} END,
        bench_id('email', i)
      FROM ${rows} WHERE k BETWEEN 30 AND 39 OR k % 10 = 0`,
    sql`INSERT INTO email_contents (email_id, text) SELECT bench_id('email', i), 'Thank you.' FROM ${rows}`,
    sql`
      INSERT INTO email_recipients (email_id, position, account_id, kind, address, address_key, domain, status,
        attempt_count, accepted_at)
      SELECT bench_id('email', i), 0, account_id, 'to', address, address, split_part(address, '@', 2),
        CASE ${status} WHEN 'sent' THEN 'accepted' ELSE ${status} END, 1, at
      FROM (SELECT *, ${address} AS address FROM ${rows}) r`,
    sql`
      INSERT INTO email_timeline (email_id, position, at, type, reply, host)
      SELECT bench_id('email', i), 0, at, 'delivered', '250 2.0.0 OK', 'mx.mail.example' FROM ${rows}`,
    sql`
      INSERT INTO events (id, account_id, type, mode, body, created_at)
      SELECT id, account_id, type, 'live', json_build_object('id', id, 'type', type, 'timestamp', at,
        'data', json_build_object('emailId', bench_id('email', i), 'to', 'ada@example.org'))::text, at
      FROM (SELECT *, bench_id('evt', i) AS id, ${type} AS type FROM ${rows}) e`,
    sql`
      INSERT INTO event_positions (account_id, mode, type, position, event_id, reached)
      SELECT account_id, 'live', ${type}, i + 1, id, substr(id, 5, 10)
      FROM (SELECT *, bench_id('evt', i) AS id FROM ${rows}) e`,
    sql`
      INSERT INTO deliveries (id, account_id, webhook_id, event_id, event_type, status, attempt_count,
        schedule_position, created_at, completed_at)
      SELECT bench_id('dlv', i), account_id, webhook_id, bench_id('evt', i), ${type},
        CASE WHEN k < 10 THEN 'canceled' WHEN k % 1000 = 0 THEN 'failed' ELSE 'succeeded' END, 1, 1, at, at
      FROM ${rows}`,
    sql`
      INSERT INTO attempts (delivery_id, number, started_at, duration_ms, response_status)
      SELECT bench_id('dlv', i), 1, at, 12, 200 FROM ${rows}`,
    sql`
      INSERT INTO subscribers (id, account_id, email, email_key, first_name, last_name, status, created_at, updated_at)
      SELECT bench_id('sub', i), account_id, email, email, 'Ada ' || i % 1000, 'Lovelace',
        CASE WHEN k < 1000 OR k % 1000 = 0 THEN 'unsubscribed' ELSE 'active' END, at, at
      FROM (SELECT *, 'person-' || i || '@mail-' || i % 50 || '.example' AS email FROM ${rows}
        WHERE i % ${sql.lit(peopleShare)} = 0) p`,
    sql`
      INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
      SELECT bench_id('aud', list), bench_id('sub', i), account_id,
        CASE WHEN k % 1000 = 0 THEN 'unsubscribed' ELSE 'active' END, at, at
      FROM ${rows}, generate_series(0, 1) list
      WHERE i % ${sql.lit(peopleShare)} = 0 AND k IS NOT NULL AND (list = 0 OR k < 110)`,
    sql`
      INSERT INTO suppressions (id, account_id, address, address_key, reason, source, email_id, created_at)
      SELECT bench_id('sup', i), account_id, address, address,
        CASE WHEN k < 100 THEN 'manual' WHEN k % 1000 = 0 THEN 'complaint' ELSE 'hard_bounce' END,
        'smtp_answer', bench_id('email', i), at
      FROM (SELECT *, 'gone-' || i || '@mail-' || i % 50 || '.example' AS address FROM ${rows}
        WHERE i % ${sql.lit(peopleShare)} = 0) s`,
    sql`
      INSERT INTO audit_log (account_id, id, created_at, action, actor_type, actor_name, target_type, target_id)
      SELECT account_id, bench_id('audit', i), at, 'webhook.updated', 'command_line', 'command line', 'webhook', webhook_id
      FROM ${rows} WHERE i % ${sql.lit(peopleShare)} = 0`,
  ]
}

/** The statements for what is few. */
const statementsOnce: readonly RawBuilder<unknown>[] = [
  sql`
    INSERT INTO audiences (id, account_id, name)
    SELECT bench_id('aud', list), account_id, 'Readers' FROM bench_accounts, generate_series(0, 99) list WHERE number = 0`,
  sql`
    INSERT INTO event_counters (account_id, last_position, reached)
    SELECT a.account_id, p.position, p.reached FROM bench_accounts a CROSS JOIN LATERAL (
      SELECT position, reached FROM event_positions p WHERE p.account_id = a.account_id AND mode = 'live'
      ORDER BY position DESC LIMIT 1
    ) p`,
  sql`
    INSERT INTO api_keys (id, account_id, mode, name, permissions, secret_hash, last_four)
    SELECT bench_id('key', i), account_id, 'live', 'Key ' || i, '{read_access}', sha256(i::text::bytea), 'abcd'
    FROM bench_accounts, generate_series(1, 99) i WHERE number = 0`,
  sql`
    UPDATE webhooks SET metadata = '{"customer":"rare"}' WHERE id IN (
      SELECT w.id FROM webhooks w JOIN bench_accounts a ON a.account_id = w.account_id WHERE a.number = 0
      ORDER BY w.id LIMIT 10
    )`,
]
