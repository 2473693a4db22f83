import { type Selectable, sql } from 'kysely'
import type { CampaignRecipientStatus, CampaignStatus } from '../../contract/campaign-resource.ts'
import { type FittingPage, selectFitting } from '../database/bounded-lists.ts'
import type { Handle, Trx } from '../database/connection.ts'
import type { CampaignsTable } from '../database/tables/campaigns.ts'
import type { RecipientStatus } from '../database/tables/emails.ts'
import type { SubscribersTable } from '../database/tables/people.ts'
import type { CampaignPageRef } from '../message/mail-tokens.ts'
import { queueNow } from '../queue/queue.ts'
import type { Scope } from '../shared/scope.ts'

export type CampaignRow = Selectable<CampaignsTable>

/** The fields that people write. */
export type CampaignFields = Pick<
  CampaignRow,
  | 'name'
  | 'audience_id'
  | 'segment_ids'
  | 'topic_id'
  | 'sender'
  | 'reply_to'
  | 'template_id'
  | 'has_own_subject'
  | 'variables'
  | 'constants'
  | 'subject'
  | 'preheader'
  | 'html'
  | 'mjml'
  | 'text'
  | 'track_opens'
  | 'track_clicks'
  | 'tags'
  | 'metadata'
  | 'throttle'
  | 'send_window'
  | 'late_start'
  | 'archive'
  | 'ab_test'
>

/** Identifies a campaign in its account. */
export type CampaignKey = { accountId: string; id: string }

export async function insertCampaign(
  handle: Handle,
  { id, scope, fields, at }: { id: string; scope: Scope; fields: CampaignFields; at: Date },
): Promise<CampaignRow> {
  const { metadata, variables, constants, send_window: window, ab_test: test, ...columns } = fields
  return handle
    .insertInto('campaigns')
    .values({
      ...columns,
      metadata: JSON.stringify(metadata),
      variables: JSON.stringify(variables),
      constants: constants && JSON.stringify(constants),
      send_window: window && JSON.stringify(window),
      ab_test: test && JSON.stringify(test),
      id,
      account_id: scope.accountId,
      mode: scope.mode,
      status: 'draft',
      created_at: at,
      updated_at: at,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

function oneOf(handle: Handle, { accountId, mode }: Scope, id: string) {
  return handle
    .selectFrom('campaigns')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('mode', '=', mode)
    .where('deleted_at', 'is', null)
}

export function findCampaign(handle: Handle, scope: Scope, id: string): Promise<CampaignRow | undefined> {
  return oneOf(handle, scope, id).executeTakeFirst()
}

/** Locks a campaign: every move and every batch does so first, and locks emails after it. */
export function lockCampaign(trx: Trx, scope: Scope, id: string): Promise<CampaignRow | undefined> {
  return oneOf(trx, scope, id).forNoKeyUpdate().executeTakeFirst()
}

/** Changes columns of a locked campaign. */
export async function updateCampaign(
  trx: Trx,
  { accountId, id }: CampaignKey,
  change: Partial<CampaignRow>,
): Promise<CampaignRow> {
  const { metadata, variables, constants, send_window: window, ab_test: test, listed_segments, ...columns } = change
  return trx
    .updateTable('campaigns')
    .set({
      ...columns,
      ...(metadata && { metadata: JSON.stringify(metadata) }),
      ...(variables && { variables: JSON.stringify(variables) }),
      ...(constants !== undefined && { constants: constants && JSON.stringify(constants) }),
      ...(window !== undefined && { send_window: window && JSON.stringify(window) }),
      ...(test !== undefined && { ab_test: test && JSON.stringify(test) }),
      ...(listed_segments !== undefined && { listed_segments: listed_segments && JSON.stringify(listed_segments) }),
    })
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** The reason why a campaign that is sending waits, and until when. Null: until a user chooses a winner. */
export type CampaignWaiting = { reason: NonNullable<CampaignRow['waiting_for']>; until: Date | null }

/**
 * Has a worker look at a locked campaign after `ms`. Null: there is nothing to do.
 *
 * @param waiting What it waits for meanwhile. Null: nothing that people are told.
 */
export async function setDue(
  trx: Trx,
  { accountId, id }: CampaignKey,
  ms: number | null,
  waiting: CampaignWaiting | null = null,
): Promise<void> {
  const dueAt = ms === null ? sql<null>`NULL` : sql<Date>`${queueNow} + make_interval(secs => ${ms / 1000})`
  await trx
    .updateTable('campaigns')
    .set({ due_at: dueAt, waiting_for: waiting?.reason ?? null, waiting_until: waiting?.until ?? null })
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .execute()
}

/** Deletes a campaign without recipients. */
export async function deleteCampaign(trx: Trx, { accountId, id }: CampaignKey): Promise<void> {
  await trx.deleteFrom('campaigns').where('account_id', '=', accountId).where('id', '=', id).execute()
}

/** Hides a locked campaign from readers, and has a worker delete it with its recipients. */
export async function hideCampaign(trx: Trx, key: CampaignKey, at: Date): Promise<void> {
  await updateCampaign(trx, key, { deleted_at: at, handled_to: '' })
  await setDue(trx, key, 0)
}

export type CampaignSummary = Omit<CampaignRow, 'html' | 'mjml' | 'text' | 'preheader' | 'variables' | 'constants'>

const summaryColumns = sql.raw(
  `account_id, id, mode, status, status_reason, name, audience_id, segment_ids, topic_id, sender, reply_to, template_id,
   template_version, has_own_subject, subject, track_opens, track_clicks, tags, metadata, throttle, send_window,
   late_start, archive, ab_test, ab_people, ab_failed, ab_tested_at, ab_winner, ab_decided_at, scheduled_at, local_time,
   fallback_timezone, listed_at, listed_to, started_at, ended_at, due_at, handled_to, handled_send_at, throttled_to,
   waiting_for, waiting_until, failed_turns, recipient_count, queued_count, handed_over_count, failed_count, left_count,
   unsubscribed_count, suppressed_count, canceled_count, created_at, updated_at, deleted_at`,
)

/** Returns campaigns, newest first. With `status` it looks through 10,000 at most. */
export function selectCampaigns(
  handle: Handle,
  { accountId, mode }: Scope,
  { status, after, limit }: { status: CampaignStatus | undefined; after: string | undefined; limit: number },
): Promise<FittingPage<CampaignSummary>> {
  return selectFitting<CampaignSummary>(handle, {
    rows: sql`
      SELECT ${summaryColumns} FROM campaigns
      WHERE account_id = ${accountId} AND mode = ${mode} AND deleted_at IS NULL AND ${after === undefined ? sql`true` : sql`id < ${after}`}
      ORDER BY id DESC`,
    fits: status === undefined ? sql`true` : sql`status = ${status}`,
    as: 'campaign',
    columns: summaryColumns,
    limit,
  })
}

/** Counts the campaigns of an account that are scheduled, sending or paused. Lock the account before. */
export async function countActive(trx: Trx, accountId: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM campaigns
    WHERE account_id = ${accountId} AND status IN ('scheduled', 'sending', 'paused')
  `.execute(trx)
  return rows[0]?.count ?? 0
}

/** Returns whether emails of a campaign wait for an attempt. Reads emails of this campaign alone. */
export async function hasWaitingEmails(handle: Handle, { accountId, id }: CampaignKey): Promise<boolean> {
  // A subquery, so that the planner uses emails_by_campaign: by the status it would read what waits in all accounts.
  const { rows } = await sql<{ found: boolean }>`
    SELECT EXISTS (
      SELECT FROM (
        SELECT status FROM emails WHERE account_id = ${accountId} AND campaign_id = ${id} OFFSET 0
      ) AS e WHERE status IN ('queued', 'sending')
    ) AS found
  `.execute(handle)
  return rows[0]?.found === true
}

export type RecipientRow = {
  subscriber_id: string
  email: string | null
  status: CampaignRecipientStatus
  reason: string | null
  send_at: Date | null
  variant: number | null
  email_id: string | null
  email_status: RecipientStatus | null
}

/**
 * Returns recipients of a campaign, newest subscribers first. With `status` it looks through 10,000 at most.
 *
 * @param page.isCanceled True: who waits gets nothing any more.
 */
export function selectRecipients(
  handle: Handle,
  { accountId, id }: CampaignKey,
  page: {
    status: CampaignRecipientStatus | undefined
    isCanceled: boolean
    after: string | undefined
    limit: number
  },
): Promise<FittingPage<RecipientRow>> {
  const { status, isCanceled, after, limit } = page
  const shown = isCanceled ? sql`CASE status WHEN 'waiting' THEN 'canceled' ELSE status END` : sql`status`
  return selectFitting<RecipientRow>(handle, {
    rows: sql`
      SELECT account_id, subscriber_id, subscriber_id AS id, status, reason, send_at, variant, email_id FROM campaign_recipients
      WHERE account_id = ${accountId} AND campaign_id = ${id}
        AND ${after === undefined ? sql`true` : sql`subscriber_id < ${after}`}
      ORDER BY account_id DESC, campaign_id DESC, subscriber_id DESC`,
    fits: status === undefined ? sql`true` : sql`${shown} = ${status}`,
    as: 'recipient',
    columns: sql`subscriber_id, person.email, ${isCanceled ? sql`CASE recipient.status WHEN 'waiting' THEN 'canceled' ELSE recipient.status END` : sql`recipient.status`} AS status,
      recipient.reason, recipient.send_at, recipient.variant, recipient.email_id, sent.status AS email_status`,
    join: sql`LEFT JOIN LATERAL (
      SELECT email FROM subscribers WHERE id = recipient.subscriber_id AND account_id = recipient.account_id OFFSET 0
    ) AS person ON true LEFT JOIN LATERAL (
      SELECT status FROM email_recipients WHERE email_id = recipient.email_id AND position = 0 OFFSET 0
    ) AS sent ON true`,
    limit,
  })
}

/** Returns a subscriber as messages show them. */
export async function findPerson(
  handle: Handle,
  accountId: string,
  id: string,
): Promise<Pick<Selectable<SubscribersTable>, 'id' | 'email' | 'first_name' | 'last_name' | 'properties'> | undefined> {
  return handle
    .selectFrom('subscribers')
    .select(['id', 'email', 'first_name', 'last_name', 'properties'])
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .executeTakeFirst()
}

/** Returns the name of an account, for content. */
export async function findAccountName(handle: Handle, accountId: string): Promise<string> {
  const row = await handle.selectFrom('accounts').select('name').where('id', '=', accountId).executeTakeFirst()
  return row?.name ?? ''
}

/** Returns whether a campaign was not deleted. */
export async function isCampaignThere(handle: Handle, { accountId, id }: CampaignKey): Promise<boolean> {
  const found = await handle
    .selectFrom('campaigns')
    .select('id')
    .where('account_id', '=', accountId)
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return found !== undefined
}

function publicCampaign(handle: Handle, { accountId, campaignId }: CampaignPageRef) {
  return handle
    .selectFrom('campaigns')
    .where('account_id', '=', accountId)
    .where('id', '=', campaignId)
    .where('archive', '=', 'public')
    .where('started_at', 'is not', null)
    .where('deleted_at', 'is', null)
}

/** Returns the winner of the A/B test of a campaign that everybody may read. Undefined: they may not. */
export function findWinnerForPage(
  handle: Handle,
  ref: CampaignPageRef,
): Promise<Pick<CampaignRow, 'ab_winner'> | undefined> {
  return publicCampaign(handle, ref).select('ab_winner').executeTakeFirst()
}

/** Returns a campaign that everybody may read. */
export function findCampaignForPage(handle: Handle, ref: CampaignPageRef): Promise<CampaignRow | undefined> {
  return publicCampaign(handle, ref).selectAll().executeTakeFirst()
}
