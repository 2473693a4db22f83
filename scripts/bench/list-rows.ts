import { createHash } from 'node:crypto'
import { type RawBuilder, sql } from 'kysely'
import type { Db } from '../../server/database/connection.ts'
import { firstIdAt } from '../../server/shared/ids.ts'
import type { World } from './lab.ts'
import {
  campaignOfEmail,
  campaignsAndSegments,
  largeCampaign,
  recipientsOf,
  smallCampaign,
} from './list-campaign-rows.ts'
import { createFunctions, days, logDays, smallAccounts } from './list-functions.ts'
import { domainCount, statisticsRows } from './list-statistics-rows.ts'
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
  /** An email, its event, the delivery of that to the webhook, and a subscriber, from the middle. */
  emailId: string
  eventId: string
  deliveryId: string
  subscriberId: string
  /** Domains that most emails were sent from, that few were, that the oldest were, and that none was. */
  domainId: string
  fewDomainId: string
  oldDomainId: string
  unusedDomainId: string
  /** Keys of most requests in the logs, of few, of the oldest, and of none. */
  keyId: string
  fewKeyId: string
  oldKeyId: string
  unusedKeyId: string
  /** A request in the middle of the logs, and its time. */
  requestId: string
  requestAt: Date
  /** Segments of the large audience: most people match, few match, none matches, and one with a status as condition. */
  segmentId: string
  fewSegmentId: string
  emptySegmentId: string
  statusSegmentId: string
  /** Seven days before the rows were written. */
  weekAgo: Date
}

/** One pair of the metadata in all rows that have the value, as the API hashes it. */
const pairOf = (name: string, value: string) =>
  createHash('sha256')
    .update(JSON.stringify([name, value]))
    .digest('base64url')

/** Rows of one statement. */
const chunkSize = 100_000
/** Connections that write at once. */
const writers = 2
/** Of ten emails: one person, one suppression. */
const peopleShare = 10
/** Most webhooks of an account by default, and a usual number of keys. */
const webhookCount = 1_000
/** From this part of the emails on, the newest three days, one of a thousand is still tried. */
const triedFrom = 0.9
/** Emails of the account for each recovery and each import. */
const rareShare = 1_000

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
  await createFunctions(db, { firstMs, stepMs, total, large, small, webhookId })
  const chunks = Array.from({ length: Math.ceil(total / chunkSize) }, (_, index) => index * chunkSize).values()
  const writeChunks = withoutTriggers(db, async (connection) => {
    for (const from of chunks) {
      const to = Math.min(from + chunkSize, total)
      for (const statement of statementsFor(from, to, count)) await statement.execute(connection)
      if (to % 1_000_000 < chunkSize) progress(`${to.toLocaleString('en')} of ${total.toLocaleString('en')} prepared`)
    }
  })
  await Promise.all(Array.from({ length: writers }, writeChunks))
  await withoutTriggers(db, async (connection) => {
    for (const statement of statementsOnce(count)) await statement.execute(connection)
  })()
  progress('vacuuming')
  await settleDown(world)

  const middle = new Date(firstMs + (until - firstMs) / 2)
  return {
    ...(await idsOf(db, large.accountId, Math.floor(total / 2))),
    key: large.key,
    webhookId,
    campaignId: largeCampaign,
    smallCampaignId: smallCampaign,
    middle,
    middleCursor: firstIdAt('email', middle).slice('email_'.length),
    requestAt: new Date(until - (logDays * 86_400_000) / 2),
    weekAgo: new Date(until - 7 * 86_400_000),
  }
}

/** Returns a function that runs `work` on one connection, without triggers and foreign keys. */
function withoutTriggers(db: Db, work: (connection: Db) => Promise<void>): () => Promise<void> {
  return () =>
    db.connection().execute(async (connection) => {
      await sql`SET session_replication_role = replica`.execute(connection)
      await work(connection)
      await sql`RESET session_replication_role`.execute(connection)
    })
}

/** Identifiers of rows, as the functions of the statements make them. */
const namedIds = {
  audienceId: sql`bench_id('aud', 0)`,
  smallAudienceId: sql`bench_id('aud', 1)`,
  domainId: sql`bench_id('dom', 0)`,
  fewDomainId: sql`bench_id('dom', 1)`,
  oldDomainId: sql`bench_id('dom', 2)`,
  unusedDomainId: sql`bench_id('dom', 3)`,
  keyId: sql`bench_id('key', 1)`,
  fewKeyId: sql`bench_id('key', 2)`,
  oldKeyId: sql`bench_id('key', 3)`,
  unusedKeyId: sql`bench_id('key', 4)`,
  segmentId: sql`bench_id('seg', 1)`,
  fewSegmentId: sql`bench_id('seg', 2)`,
  emptySegmentId: sql`bench_id('seg', 3)`,
  statusSegmentId: sql`bench_id('seg', 4)`,
}

/** @param middle A row in the middle. The one after it is of the large account, and its event of the common type. */
async function idsOf(db: Db, accountId: string, middle: number) {
  const named = Object.entries(namedIds).map(([name, id]) => sql`${id} AS ${sql.id(name)}`)
  const next = sql.lit(middle + 1)
  type Ids = Record<keyof typeof namedIds | 'emailId' | 'eventId' | 'deliveryId' | 'requestId' | 'subscriberId', string>
  const { rows } = await sql<Ids>`
    SELECT ${sql.join(named)}, bench_id('email', ${next}) AS "emailId", bench_id('evt', ${next}) AS "eventId",
      bench_id('dlv', ${next}) AS "deliveryId", bench_recent_id('req', ${next}) AS "requestId",
      (SELECT id FROM subscribers WHERE account_id = ${accountId} AND id > bench_id('sub', ${next}) ORDER BY id LIMIT 1)
        AS "subscriberId"
  `.execute(db)
  const found = rows[0]
  if (found === undefined) throw new Error('there are no rows')
  return found
}

/** The statements for the rows from `from` to before `to`. */
function statementsFor(from: number, to: number, count: number): RawBuilder<unknown>[] {
  const rows = sql`bench_rows(${sql.lit(from)}, ${sql.lit(to)})`
  // The same people are written to again and again, and one address gets a twentieth of all.
  const address = sql.raw(`CASE WHEN k BETWEEN 40 AND 49 THEN 'rare@example.com' WHEN k % 20 = 0 THEN 'log@example.com'
    ELSE 'person-' || (i * 7919) % ${Math.max(1, Math.floor(count / peopleShare))} || '@mail-' || i % 50 || '.example' END`)
  const status = sql`CASE WHEN k < 10 THEN 'validated' WHEN k < 20 THEN 'canceled' WHEN k % 1000 < 20 THEN 'bounced'
    WHEN k % 1000 < 25 THEN 'failed' WHEN k % 1000 < 30 THEN 'sent' WHEN k % 1000 = 30 THEN 'suppressed'
    WHEN k % 1000 = 32 AND k >= ${sql.lit(Math.floor(count * triedFrom))} THEN 'queued' ELSE 'delivered' END`
  const mode = sql`CASE WHEN k < 10 THEN 'test' ELSE 'live' END`
  const subject = sql`CASE WHEN k BETWEEN 40 AND 49 THEN 'Rare offer' ELSE 'Order ' || i END`
  // No email with the tag "receipt" has the plan or is to the common address.
  const tags = sql`CASE WHEN k BETWEEN 20 AND 29 THEN '{rare}' WHEN k IS NULL THEN '{rare,welcome}'
    WHEN k % 10 < 9 THEN '{welcome}' WHEN k % 20 = 9 THEN '{receipt}' ELSE '{}' END::text[]`
  const domain = sql`CASE WHEN k < 10 OR k IS NULL THEN NULL WHEN k BETWEEN 60 AND 69 THEN bench_id('dom', 2)
    WHEN k % 100 = 50 THEN bench_id('dom', 1) ELSE bench_id('dom', 0) END`
  const type = sql`CASE WHEN k < 5 THEN 'domain.deleted' WHEN k % 50 = 0 THEN 'contact.created' ELSE 'email.delivered' END`
  return [
    sql`
      INSERT INTO emails (id, account_id, mode, status, domain_id, sender, subject, message_id, tags, metadata,
        campaign_id, created_at, updated_at, completed_at)
      SELECT bench_id('email', i), account_id, ${mode}, ${status}, ${domain}, 'Shop <hello@shop.example>', ${subject},
        '<' || i || '@shop.example>', ${tags},
        CASE WHEN k BETWEEN 30 AND 39 THEN '{"customer":"rare"}' WHEN k % 10 = 0 THEN '{"plan":"free"}' ELSE '{}' END::jsonb,
        ${campaignOfEmail}, at, at, CASE WHEN ${status} <> 'queued' THEN at END
      FROM ${rows}`,
    sql`
      INSERT INTO email_subjects (account_id, mode, subject_key, email_id)
      SELECT account_id, ${mode}, lower(${subject}), bench_id('email', i) FROM ${rows}`,
    sql`
      INSERT INTO email_tags (account_id, mode, tag, email_id)
      SELECT account_id, ${mode}, unnest(${tags}), bench_id('email', i) FROM ${rows}`,
    recipientsOf(rows),
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
        CASE ${status} WHEN 'sent' THEN 'accepted' WHEN 'queued' THEN 'deferred' ELSE ${status} END, 1, at
      FROM (SELECT *, ${address} AS address FROM ${rows}) r`,
    sql`
      INSERT INTO email_timeline (email_id, position, at, type, reply, host)
      SELECT bench_id('email', i), 0, at, 'delivered', '250 2.0.0 OK', 'mx.mail.example' FROM ${rows}`,
    sql`
      INSERT INTO events (id, account_id, type, mode, body, created_at)
      SELECT id, account_id, type, 'live', '{"id":"' || id || '","type":"' || type || '","timestamp":' || to_json(at)
        || ',"data":{"emailId":"' || bench_id('email', i) || '","to":"ada@example.org"}}', at
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
      INSERT INTO subscribers (id, account_id, email, email_key, first_name, last_name, status, properties,
        created_at, updated_at)
      SELECT bench_id('sub', i), account_id, email, email, 'Ada ' || i / ${sql.lit(peopleShare)} % 1000, 'Lovelace',
        CASE WHEN k < 1000 OR k % 1000 = 0 THEN 'unsubscribed' ELSE 'active' END,
        CASE WHEN k IS NOT NULL THEN '{"plan":"free"}' ELSE '{}' END::jsonb, at, at
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
    sql`
      INSERT INTO request_logs (account_id, mode, id, key_id, key_name, method, route, path, status, duration_ms,
        error_code, ip_address, request_body, error_details)
      SELECT account_id, 'live', bench_recent_id('req', i), bench_id('key', key), 'Key ' || key, 'POST', '/v1/emails',
        '/v1/emails', status, 12.3,
        CASE status WHEN 409 THEN 'conflict' WHEN 422 THEN 'rule_violation' WHEN 500 THEN 'internal_error' END,
        '203.0.113.7', CASE WHEN status <> 202 THEN '{"subject":"[text, 9 characters]"}' END,
        CASE status WHEN 422 THEN '[{"path":"body.to[0]","message":null}]' END
      FROM (
        SELECT *, CASE WHEN k BETWEEN 10 AND 19 THEN 3 WHEN k % 100 = 50 THEN 2 ELSE 1 END AS key,
          CASE WHEN k < 10 THEN 409 WHEN k % 1000 < 5 THEN 422 WHEN k % 1000 = 5 THEN 500 WHEN k % 1000 = 6 THEN 0
            ELSE 202 END AS status
        FROM ${rows}
      ) r`,
  ]
}

/** The statements for what is few. */
const statementsOnce = (count: number): RawBuilder<unknown>[] => [
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
    INSERT INTO domains (id, account_id, name, return_path, status, rsa_selector, rsa_public_key, rsa_private_key,
      ed25519_selector, ed25519_public_key, ed25519_private_key, verified_at)
    SELECT bench_id('dom', i), account_id, 'shop-' || i || '.example', 'send.shop-' || i || '.example', 'verified',
      'rsa', 'key', '', 'ed', 'key', '', bench_at(0)
    FROM bench_accounts, generate_series(0, ${sql.lit(domainCount - 1)}) i WHERE number = 0`,
  sql`
    INSERT INTO webhook_recoveries (account_id, id, webhook_id, status, since, found, found_all, done, created_at,
      completed_at)
    SELECT account_id, bench_id('rec', i), webhook_id, 'completed', bench_at(0), 10, true, 10, bench_at(i), bench_at(i)
    FROM bench_accounts, generate_series(0, ${sql.lit(count - 1)}, ${sql.lit(rareShare)}) i WHERE number = 0`,
  sql`
    INSERT INTO imports (account_id, id, mode, audience_id, status, conflict, contact_status, emits_events, delimiter,
      encoding, columns, bytes, position, rows_read, rows_created, created_at, started_at, ended_at, worked_at)
    SELECT account_id, bench_id('imp', i), 'live', bench_id('aud', 0), 'completed', 'update', 'active', false, 'comma',
      'utf-8', '[{"column":"email","field":"email"}]', 100, 100, 5, 5, bench_at(i), bench_at(i), bench_at(i), bench_at(i)
    FROM bench_accounts, generate_series(0, ${sql.lit(count - 1)}, ${sql.lit(rareShare)}) i WHERE number = 0`,
  ...campaignsAndSegments(count),
  ...statisticsRows(),
  sql`
    UPDATE webhooks SET metadata = '{"customer":"rare"}' WHERE id IN (
      SELECT w.id FROM webhooks w JOIN bench_accounts a ON a.account_id = w.account_id WHERE a.number = 0
      ORDER BY w.id LIMIT 10
    )`,
]
