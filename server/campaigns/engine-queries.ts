import { type RawBuilder, sql } from 'kysely'
import type { CampaignRecipientStatus } from '../../contract/campaign-resource.ts'
import type { Db, Handle, Trx } from '../database/connection.ts'
import type { Properties } from '../database/tables/people.ts'
import { queueNow } from '../queue/queue.ts'
import { isTesting } from './ab-test.ts'
import type { SendTimes } from './local-times.ts'
import type { CampaignKey, CampaignRow } from './queries.ts'

/** A campaign that this process has in hand, with what its messages need. */
export type ClaimedCampaign = CampaignRow & { account_name: string }

/**
 * Claims up to `limit` campaigns that are due, each for `leaseMs`: one of each account, and of an account the one that
 * waits longest. Accounts take turns in the order of their ids, from the one behind `after`: however many campaigns an
 * account has, it gets as many turns as one with a single campaign. Returns them in that order. Campaigns of a process
 * that died are due again when their lease is over. Leaves out the accounts in `without`.
 *
 * The lease only saves work: two processes that have the same campaign in hand lock it for each change. Skips campaigns
 * whose row is locked, so that a claim waits for no lock and two claims cannot deadlock.
 */
export async function claimCampaigns(
  db: Db,
  limit: number,
  leaseMs: number,
  { after = '', without = [] }: { after?: string; without?: readonly string[] } = {},
): Promise<ClaimedCampaign[]> {
  const { rows } = await sql<ClaimedCampaign>`
    WITH first AS MATERIALIZED (
      SELECT DISTINCT ON (account_id) account_id, id FROM campaigns
      WHERE due_at IS NOT NULL AND due_at <= (SELECT ${queueNow}) AND account_id <> ALL(${without}::text[])
      ORDER BY account_id, due_at
    ), next AS MATERIALIZED (
      SELECT c.account_id, c.id FROM first f JOIN campaigns c ON c.account_id = f.account_id AND c.id = f.id
      WHERE c.due_at <= (SELECT ${queueNow})
      ORDER BY f.account_id <= ${after}, f.account_id LIMIT ${limit} FOR NO KEY UPDATE OF c SKIP LOCKED
    )
    UPDATE campaigns c SET due_at = ${queueNow} + make_interval(secs => ${leaseMs / 1000})
    FROM next n JOIN accounts a ON a.id = n.account_id
    WHERE c.account_id = n.account_id AND c.id = n.id
    RETURNING c.*, a.name AS account_name
  `.execute(db)
  const turnOf = ({ account_id: id }: ClaimedCampaign) => `${id <= after ? 1 : 0}${id}`
  return rows.toSorted((one, other) => (turnOf(one) < turnOf(other) ? -1 : 1))
}

/** Gives claimed campaigns back: they are due at once. Does nothing for those that had their turn. */
export async function releaseCampaigns(db: Db, claimed: readonly ClaimedCampaign[]): Promise<void> {
  if (claimed.length === 0) return
  await sql`
    UPDATE campaigns c SET due_at = ${queueNow}
    FROM unnest(
      ${claimed.map(({ account_id }) => account_id)}::text[],
      ${claimed.map(({ id }) => id)}::text[],
      ${claimed.map(({ due_at }) => due_at)}::timestamptz[]
    ) AS i (account_id, id, due_at)
    -- A turn, or another process, has changed the time.
    WHERE c.account_id = i.account_id AND c.id = i.id AND c.due_at = i.due_at
  `.execute(db)
}

/** Returns how late a scheduled campaign is. Milliseconds. */
export async function latenessOf(trx: Trx, { accountId, id }: CampaignKey): Promise<number> {
  const { rows } = await sql<{ ms: number }>`
    SELECT extract(epoch FROM ${queueNow} - scheduled_at)::float8 * 1000 AS ms FROM campaigns
    WHERE account_id = ${accountId} AND id = ${id}
  `.execute(trx)
  return rows[0]?.ms ?? 0
}

/** Returns the time of the database in Unix time, the same for all processes. Milliseconds. */
export async function databaseMs(handle: Handle): Promise<number> {
  const { rows } = await sql<{ ms: number }>`
    SELECT extract(epoch FROM ${queueNow})::float8 * 1000 AS ms
  `.execute(handle)
  return rows[0]?.ms ?? 0
}

/** How many parts the people of a campaign are divided into for each percent and variant. */
const placesOfVariant = 100

/**
 * Returns the SQL for the number of the variant that a person gets in the A/B test of a campaign. Null: the person is not
 * in the test. It is computed from the ids of the campaign and the person alone, so it is the same each time.
 *
 * The first 48 bits of SHA-256 of both ids are scaled to a number from 0 to 100 × variants. A person whose number is below
 * share × variants is in the test, and gets the variant number modulo variants.
 */
function variantOf({ id, ab_test: test }: Listed): RawBuilder<number | null> {
  if (test === null) return sql`NULL::smallint`
  const count = test.variants.length
  const bits = sql`('x' || encode(substr(sha256(convert_to(${id} || '/' || c.subscriber_id, 'UTF8')), 1, 6), 'hex'))::bit(48)`
  const place = sql`((${bits}::bigint * ${placesOfVariant * count}::bigint) >> 48)`
  return sql`(CASE WHEN ${place} < ${test.share * count}::bigint THEN (${place} % ${count}::bigint)::smallint END)`
}

type Listed = Pick<CampaignRow, 'account_id' | 'id' | 'audience_id' | 'listed_at' | 'listed_to' | 'ab_test'>

/** The next contacts of the audience: what a step of listing looks at. */
function nextContacts({ audience_id: audienceId, listed_to: listedTo }: Listed, limit: number): RawBuilder<unknown> {
  return sql`
    SELECT subscriber_id, status, created_at FROM contacts
    WHERE (audience_id, subscriber_id) > (${audienceId}, ${listedTo}) AND audience_id <= ${audienceId}
    ORDER BY audience_id, subscriber_id LIMIT ${limit}
  `
}

/** The pattern of the name of a time zone. Most other values do not match it, and are not read. */
const zoneForm = sql.raw(`'^[A-Za-z][A-Za-z0-9_+/-]{1,63}$'`)

/** Returns the time zones that the next people have as values of a property, each once, in small letters. */
export async function zonesOfNext(
  trx: Trx,
  campaign: Listed,
  { limit, property }: { limit: number; property: string },
): Promise<string[]> {
  const { rows } = await sql<{ zone: string }>`
    WITH page AS MATERIALIZED (${nextContacts(campaign, limit)})
    SELECT DISTINCT lower(s.zone COLLATE "C") AS zone FROM page c
    CROSS JOIN LATERAL (
      SELECT properties ->> ${property} AS zone FROM subscribers
      WHERE id = c.subscriber_id AND account_id = ${campaign.account_id} OFFSET 0
    ) AS s
    WHERE s.zone ~ ${zoneForm}
  `.execute(trx)
  return rows.map((row) => row.zone)
}

type Listing = { last: string | null; looked: number; count: number; inTest: number[] }

/**
 * Adds the next people of the audience to the recipients of a locked campaign: those who are active, and were in the
 * audience at `listed_at`. Looks at `limit` contacts.
 *
 * @param options.condition Who of them, over the aliases `c` (`contacts`) and `s` (their row of `subscribers`).
 * @param options.times When they may get it, by their zones, which are values of `property`. Null: at once.
 * @returns The last contact that was looked at; null: there are no more. `count`: how many recipients were added, and
 * `inTest`: how many of them to each variant.
 */
export async function listRecipients(
  trx: Trx,
  campaign: Listed,
  options: { limit: number; condition: RawBuilder<boolean>; times: (SendTimes & { property: string }) | null },
): Promise<Listing> {
  const { limit, condition, times } = options
  const variants = campaign.ab_test?.variants.length ?? 0
  const zones =
    times !== null &&
    sql`LEFT JOIN unnest(${times.zones}::text[], ${times.times}::timestamptz[]) AS z (zone, send_at)
      ON z.zone = lower((s.properties ->> ${times.property}) COLLATE "C")`
  const { rows } = await sql<Listing>`
    WITH page AS MATERIALIZED (${nextContacts(campaign, limit)}), added AS (
      INSERT INTO campaign_recipients (account_id, campaign_id, subscriber_id, status, variant, send_at)
      SELECT ${campaign.account_id}, ${campaign.id}, c.subscriber_id, 'waiting', ${variantOf(campaign)},
        ${times === null ? sql`NULL` : sql`coalesce(z.send_at, ${times.fallback})`}
      FROM page c
      CROSS JOIN LATERAL (
        SELECT status, email_key, first_name, last_name, properties FROM subscribers
        WHERE id = c.subscriber_id AND account_id = ${campaign.account_id} OFFSET 0
      ) AS s
      ${zones || sql``}
      WHERE c.status = 'active' AND s.status = 'active' AND c.created_at <= ${campaign.listed_at} AND ${condition}
      ON CONFLICT DO NOTHING
      RETURNING variant
    )
    SELECT (SELECT max(subscriber_id) FROM page) AS last, (SELECT count(*)::int FROM page) AS looked,
      (SELECT count(*)::int FROM added) AS count,
      ARRAY(
        SELECT (SELECT count(*)::int FROM added WHERE variant = v.number)
        FROM generate_series(0, ${variants}::int - 1) AS v (number) ORDER BY v.number
      ) AS "inTest"
  `.execute(trx)
  return rows[0] ?? { last: null, looked: 0, count: 0, inTest: [] }
}

export type Tally = { status: CampaignRecipientStatus; reason: string | null; count: number }

/**
 * Ends the queuing of recipients of a locked campaign whose first attempt is over, and of those who are not written to
 * any more. Returns how many became what.
 */
export async function settleQueued(trx: Trx, { accountId, id }: CampaignKey): Promise<Tally[]> {
  const { rows } = await sql<Tally>`
    WITH queued AS MATERIALIZED (
      -- The bound makes the planner use the index of what is queued, whatever the statistics say.
      SELECT ctid AS place, email_id FROM campaign_recipients
      WHERE account_id = ${accountId} AND campaign_id = ${id} AND status = 'queued' AND email_id > ''
    ), over AS MATERIALIZED (
      SELECT q.place, e.status, e.withheld_for FROM queued q
      -- Without a row, the email was deleted when it had ended.
      LEFT JOIN LATERAL (
        SELECT status, attempt_count, withheld_for FROM email_recipients WHERE email_id = q.email_id AND position = 0 OFFSET 0
      ) AS e ON true
      -- A recipient that is queued may have been sent to before: by a process that died.
      WHERE e.status IS NULL OR e.status NOT IN ('queued', 'sending')
        OR e.attempt_count > CASE e.status WHEN 'sending' THEN 1 ELSE 0 END
    ), changed AS (
      UPDATE campaign_recipients r SET
        status = CASE o.status WHEN 'suppressed' THEN 'skipped' WHEN 'canceled' THEN 'canceled' ELSE 'handed_over' END,
        reason = CASE WHEN o.status = 'suppressed' THEN coalesce(o.withheld_for, 'suppressed') END
      -- Recipients change under the lock of their campaign only, which this transaction has: the rows have not moved.
      FROM over o WHERE r.ctid = o.place
      RETURNING r.status, r.reason
    )
    SELECT status, reason, count(*)::int AS count FROM changed GROUP BY status, reason
  `.execute(trx)
  return rows
}

/**
 * Returns how many recipients of a campaign are still tried: their first attempt was made, and their email has not ended.
 * Reads the emails of the account that have not ended, by an index of those, and no others.
 */
export async function countDeferred(handle: Handle, { accountId, id }: CampaignKey): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM (
      -- OFFSET 0 makes the planner look up each by its own index, whatever the statistics say.
      SELECT id, campaign_id FROM emails WHERE account_id = ${accountId} AND status IN ('queued', 'sending') OFFSET 0
    ) AS e CROSS JOIN LATERAL (
      SELECT account_id, campaign_id, status FROM campaign_recipients WHERE email_id = e.id OFFSET 0
    ) AS r
    WHERE e.campaign_id = ${id} AND r.account_id = ${accountId} AND r.campaign_id = ${id} AND r.status = 'handed_over'
  `.execute(handle)
  return rows[0]?.count ?? 0
}

/** Returns how many emails of campaigns of an account wait for their first attempt. */
export async function countQueued(handle: Handle, accountId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT coalesce(sum(queued_count), 0)::int AS count FROM campaigns
    WHERE account_id = ${accountId} AND due_at IS NOT NULL
  `.execute(handle)
  return rows[0]?.count ?? 0
}

/** A recipient whose turn it is, with the person as they are now. */
export type WaitingRecipient = {
  subscriber_id: string
  /** Null: the campaign has no local time. */
  send_at: Date | null
  /** The variant that they test. Null: they test none. */
  variant: number | null
  /** Null: the person is deleted. */
  email: string | null
  first_name: string | null
  last_name: string | null
  properties: Properties | null
  /** Null: the person is not in the audience any more. */
  contact_status: 'active' | 'unsubscribed' | 'pending' | null
  person_status: 'active' | 'unsubscribed' | null
}

type Place = Pick<
  CampaignRow,
  'account_id' | 'id' | 'audience_id' | 'handled_to' | 'local_time' | 'handled_send_at' | 'ab_test' | 'ab_winner'
>

/** Those who wait from `handled_to` on, at first of the A/B test alone. */
function nextInOrder(campaign: Place, limit: number): RawBuilder<unknown> {
  return sql`
    SELECT subscriber_id, send_at, variant FROM campaign_recipients
    WHERE account_id = ${campaign.account_id} AND campaign_id = ${campaign.id}
      AND subscriber_id >= ${campaign.handled_to} AND status = 'waiting' ${isTesting(campaign) ? sql`AND variant IS NOT NULL` : sql``}
    ORDER BY account_id, campaign_id, subscriber_id LIMIT ${limit}
  `
}

/** The same of a campaign with a local time: of those whose time has come, the earliest first. */
function nextInTime(campaign: Place, limit: number): RawBuilder<unknown> {
  return sql`
    SELECT subscriber_id, send_at, variant FROM campaign_recipients
    WHERE account_id = ${campaign.account_id} AND campaign_id = ${campaign.id} AND status = 'waiting'
      AND (send_at, subscriber_id) >= (${campaign.handled_send_at ?? sql`'-infinity'`}, ${campaign.handled_to})
      AND send_at <= (SELECT ${queueNow})
    ORDER BY account_id, campaign_id, send_at, subscriber_id LIMIT ${limit}
  `
}

/** Returns the next recipients that wait and whose time has come, in the order of their turns. */
export async function selectWaiting(handle: Handle, campaign: Place, limit: number): Promise<WaitingRecipient[]> {
  const { rows } = await sql<WaitingRecipient>`
    SELECT r.subscriber_id, r.send_at, r.variant, s.email, s.first_name, s.last_name, s.properties, s.status AS person_status,
      c.status AS contact_status
    FROM (${campaign.local_time === null ? nextInOrder(campaign, limit) : nextInTime(campaign, limit)}) AS r
    LEFT JOIN LATERAL (
      SELECT email, first_name, last_name, properties, status FROM subscribers
      WHERE id = r.subscriber_id AND account_id = ${campaign.account_id} OFFSET 0
    ) AS s ON true
    LEFT JOIN LATERAL (
      SELECT status FROM contacts
      WHERE audience_id = ${campaign.audience_id} AND subscriber_id = r.subscriber_id OFFSET 0
    ) AS c ON true
    ORDER BY r.send_at, r.subscriber_id
  `.execute(handle)
  return rows
}

/** Returns the earliest `send_at` of the waiting recipients of a campaign with a local time. Null: no recipient waits. */
export async function nextSendTime(trx: Trx, { accountId, id }: CampaignKey): Promise<Date | null> {
  const { rows } = await sql<{ send_at: Date }>`
    SELECT send_at FROM campaign_recipients
    WHERE account_id = ${accountId} AND campaign_id = ${id} AND status = 'waiting' AND send_at IS NOT NULL
    ORDER BY account_id, campaign_id, send_at, subscriber_id LIMIT 1
  `.execute(trx)
  return rows[0]?.send_at ?? null
}

/** Returns whether people in the A/B test of a campaign wait. */
export async function hasTestWaiting(trx: Trx, { accountId, id }: CampaignKey): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`
    SELECT EXISTS (
      SELECT FROM campaign_recipients
      WHERE account_id = ${accountId} AND campaign_id = ${id} AND status = 'waiting' AND variant IS NOT NULL
    ) AS found
  `.execute(trx)
  return rows[0]?.found === true
}

/** Locks those of the recipients that still wait, and returns them. */
export async function lockWaiting(
  trx: Trx,
  { accountId, id }: CampaignKey,
  subscriberIds: readonly string[],
): Promise<Set<string>> {
  const { rows } = await sql<{ subscriber_id: string }>`
    SELECT subscriber_id FROM campaign_recipients
    WHERE account_id = ${accountId} AND campaign_id = ${id} AND subscriber_id = ANY(${subscriberIds}::text[])
      AND status = 'waiting'
    ORDER BY subscriber_id FOR NO KEY UPDATE
  `.execute(trx)
  return new Set(rows.map((row) => row.subscriber_id))
}

/** The outcome of the turn of a recipient. */
export type Turn = {
  subscriberId: string
  status: 'queued' | 'failed' | 'skipped'
  emailId: string | null
  reason: string | null
}

/** Writes what became of recipients of a locked campaign. */
export async function writeTurns(trx: Trx, { accountId, id }: CampaignKey, turns: readonly Turn[]): Promise<void> {
  if (turns.length === 0) return
  await sql`
    WITH changed AS MATERIALIZED (
      SELECT r.place, i.status, i.email_id, i.reason
      FROM unnest(
        ${turns.map(({ subscriberId }) => subscriberId)}::text[],
        ${turns.map(({ status }) => status)}::text[],
        ${turns.map(({ emailId }) => emailId)}::text[],
        ${turns.map(({ reason }) => reason)}::text[]
      ) AS i (subscriber_id, status, email_id, reason)
      -- OFFSET 0 makes the planner look up each by its key, whatever the statistics say.
      CROSS JOIN LATERAL (
        SELECT ctid AS place FROM campaign_recipients
        WHERE account_id = ${accountId} AND campaign_id = ${id} AND subscriber_id = i.subscriber_id OFFSET 0
      ) r
    )
    UPDATE campaign_recipients r SET status = c.status, email_id = c.email_id, reason = c.reason
    -- Recipients change under the lock of their campaign only, which this transaction has: the rows have not moved.
    FROM changed c WHERE r.ctid = c.place
  `.execute(trx)
}

/** Returns the emails of a campaign that wait for their first attempt: at most as many as may wait at once. */
export async function selectQueued(trx: Trx, { accountId, id }: CampaignKey): Promise<string[]> {
  const { rows } = await sql<{ email_id: string }>`
    SELECT email_id FROM campaign_recipients
    WHERE account_id = ${accountId} AND campaign_id = ${id} AND status = 'queued' ORDER BY email_id
  `.execute(trx)
  return rows.map((row) => row.email_id)
}

/**
 * Changes the recipients whose emails were taken out of the queue: they wait again (`waiting`), or get nothing
 * (`canceled`). Returns the first of them and how many there are.
 */
export async function unqueue(
  trx: Trx,
  { accountId, id }: CampaignKey,
  { emailIds, status }: { emailIds: readonly string[]; status: 'waiting' | 'canceled' },
): Promise<{ first: string | null; count: number }> {
  if (emailIds.length === 0) return { first: null, count: 0 }
  const { rows } = await sql<{ first: string | null; count: number }>`
    WITH changed AS (
      UPDATE campaign_recipients SET
        status = ${status}, email_id = CASE WHEN ${status} = 'canceled' THEN email_id END
      WHERE account_id = ${accountId} AND campaign_id = ${id} AND status = 'queued'
        AND email_id = ANY(${emailIds}::text[])
      RETURNING subscriber_id
    )
    SELECT min(subscriber_id) AS first, count(*)::int AS count FROM changed
  `.execute(trx)
  return rows[0] ?? { first: null, count: 0 }
}
