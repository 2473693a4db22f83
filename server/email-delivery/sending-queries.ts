import { type RawBuilder, type Selectable, sql } from 'kysely'
import type { CampaignStatus } from '../../contract/campaign-resource.ts'
import type { Handle, Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type {
  EmailRecipientsTable,
  EmailsTable,
  RecipientStatus,
  SuppressionsTable,
} from '../database/tables/emails.ts'
import type { ContactsTable } from '../database/tables/people.ts'
import { queueNow } from '../queue/queue.ts'
import { statusOfEmail } from './email-status.ts'
import { type EmailDomain, type Withholding, withholdingOf } from './send-refusal.ts'

/** The current state of a claimed email. */
export type DueEmail = {
  id: string
  accountId: string
  /** The current state of the sending domain; null: it was deleted. */
  domain: EmailDomain | null
  messageId: string
  sender: string
  subject: string
  createdAt: Date
  scheduledAt: Date | null
  audienceId: string | null
  topicId: string | null
  trackOpens: boolean
  trackClicks: boolean
  /** Null: it is of no campaign. */
  campaign: CampaignOfEmail | null
  /** The state of the campaign that it is part of. Null: of none, or of one that is deleted. */
  campaignStatus: CampaignState | null
  /** All recipients, including those without work to do: the message headers name them. */
  recipients: readonly DueRecipient[]
}

/** `resting`: it is sending, and waits until its `sendWindow` opens. */
export type CampaignState = CampaignStatus | 'resting'

/** The key of a campaign that an email is part of. */
export type CampaignOfEmail = { accountId: string; id: string }

export type DueRecipient = {
  position: number
  kind: 'to' | 'cc' | 'bcc'
  name: string | null
  address: string
  domain: string
  status: RecipientStatus
  /** Number of attempts begun so far. */
  attempts: number
  nextAttemptAt: Date | null
  /** Time of the first attempt or, without one, when no usable server was found; null: neither happened. */
  triedSince: Date | null
  /** True when the recipient waits and its next attempt is due. */
  due: boolean
  /** True when the result of the last attempt is unknown. */
  isAnswerLost: boolean
  /** True when a server may have the message, because the result of the last or an earlier attempt is unknown. */
  mayHaveIt: boolean
  /** Why the recipient may no longer be sent to. It may be newer than the email. Null: they may. */
  withheld: Withholding | null
}

type EmailColumn = 'mode' | 'status' | 'tags' | 'updated_at' | 'completed_at'
type Row = Omit<Selectable<EmailsTable>, EmailColumn> &
  Pick<
    Selectable<EmailRecipientsTable>,
    | 'position'
    | 'kind'
    | 'name'
    | 'address'
    | 'domain'
    | 'status'
    | 'attempt_count'
    | 'first_attempt_at'
    | 'next_attempt_at'
    | 'delayed_at'
  > & {
    due: boolean
    domain_name: string | null
    domain_status: EmailDomain['status']
    return_path: string
    doubts: ('unknown' | 'resent')[]
    campaign_status: CampaignState | null
    suppressed: SuppressionsTable['reason'] | null
    /** Of the people in the audience of the email. Null: none is in it, or there is none. */
    contact_status: ContactsTable['status'] | null
    has_left: boolean
    without_topic: boolean
  }

/** How early a recipient may be sent to, to allow for clock differences between processes. Seconds. */
const earlySeconds = 5

/**
 * Who has the address of a recipient, and whom an email of a campaign was written to, if they have another address by
 * now: what either of them chose holds.
 */
const people = sql`
  SELECT id, status FROM subscribers WHERE account_id = e.account_id AND email_key = r.address_key
  UNION ALL
  SELECT id, status FROM subscribers
  WHERE account_id = e.account_id AND id = m.subscriber_id AND email_key <> r.address_key
`

/** The state of a campaign `c`. */
const campaignState = sql<CampaignState>`
  CASE WHEN c.status = 'sending' AND c.waiting_for = 'send_window' AND c.waiting_until > ${queueNow} THEN 'resting'
    ELSE c.status END
`

/**
 * Locks and reads emails with all their recipients, in the order that every locker uses, which avoids deadlocks.
 * A recipient in `sending` is due: only the owner of the claim sends, so the previous owner has died.
 */
export async function lockDue(trx: Trx, emailIds: readonly string[]): Promise<DueEmail[]> {
  const statement = sql<Row>`
    SELECT e.id, e.account_id, e.domain_id, e.message_id, e.sender, e.subject, e.created_at, e.scheduled_at, e.audience_id,
      e.campaign_id, e.topic_id, e.track_opens, e.track_clicks, r.position, r.kind, r.name, r.address, r.domain, r.status, r.attempt_count,
      r.first_attempt_at, r.next_attempt_at, r.delayed_at, d.name AS domain_name, d.status AS domain_status, d.return_path,
      r.status = 'sending' OR r.status IN ('queued', 'deferred')
        AND coalesce(r.next_attempt_at <= ${queueNow} + make_interval(secs => ${earlySeconds}), true) AS due,
      -- Before the first attempt the timeline has no such entries.
      CASE WHEN r.first_attempt_at IS NULL OR r.status NOT IN ('queued', 'sending', 'deferred') THEN '{}' ELSE ARRAY(
        SELECT t.type FROM email_timeline t
        WHERE t.email_id = e.id AND t.position = r.position AND t.type IN ('unknown', 'resent') ORDER BY t.id
      ) END AS doubts,
      (
        SELECT ${campaignState} FROM campaigns c WHERE c.account_id = e.account_id AND c.id = e.campaign_id
      ) AS campaign_status,
      (
        SELECT s.reason FROM suppressions s WHERE s.account_id = e.account_id AND s.address_key = r.address_key
      ) AS suppressed,
      -- Looked up for audiences alone: see recipient-eligibility.ts. An unsubscription sorts behind what it prevails over.
      CASE WHEN e.audience_id IS NOT NULL THEN (
        SELECT max(CASE WHEN p.status = 'unsubscribed' THEN p.status ELSE c.status END)
        FROM (${people}) AS p LEFT JOIN contacts c ON c.subscriber_id = p.id AND c.audience_id = e.audience_id
      ) END AS contact_status,
      m.subscriber_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM contacts c WHERE c.audience_id = e.audience_id AND c.subscriber_id = m.subscriber_id
      ) AS has_left,
      -- The topic may be deleted: then no email about it is sent.
      e.topic_id IS NOT NULL AND NOT coalesce((
        SELECT bool_and(coalesce(h.subscribed, t.default_choice = 'opt_out')) FROM topics t
        LEFT JOIN LATERAL (${people}) AS p ON true
        -- OFFSET 0 makes the planner look up each choice by its key, whatever the statistics say.
        LEFT JOIN LATERAL (
          SELECT subscribed FROM topic_choices
          WHERE account_id = e.account_id AND subscriber_id = p.id AND topic_id = e.topic_id OFFSET 0
        ) AS h ON true
        WHERE t.account_id = e.account_id AND t.id = e.topic_id AND t.deleted_at IS NULL
      ), false) AS without_topic
    FROM emails e JOIN email_recipients r ON r.email_id = e.id LEFT JOIN domains d ON d.id = e.domain_id
    -- Before the first attempt: later ones go on with what was begun.
    LEFT JOIN LATERAL (
      SELECT subscriber_id FROM campaign_recipients
      WHERE account_id = e.account_id AND campaign_id = e.campaign_id AND email_id = e.id AND status = 'queued' OFFSET 0
    ) AS m ON e.campaign_id IS NOT NULL
    WHERE e.id = ANY(${emailIds}::text[]) AND r.email_id = ANY(${emailIds}::text[])
    ORDER BY e.id, r.position
    FOR UPDATE OF e, r
  `
  const rows = await executePrepared(trx, { name: 'lock_due_emails' }, statement)
  return [...Map.groupBy(rows, ({ id }) => id).values()].map((ofEmail) => {
    const email = ofEmail[0] as Row
    return {
      id: email.id,
      accountId: email.account_id,
      domain: domainOf(email),
      messageId: email.message_id,
      sender: email.sender,
      subject: email.subject,
      createdAt: email.created_at,
      scheduledAt: email.scheduled_at,
      audienceId: email.audience_id,
      topicId: email.topic_id,
      trackOpens: email.track_opens,
      trackClicks: email.track_clicks,
      campaign: email.campaign_id === null ? null : { accountId: email.account_id, id: email.campaign_id },
      campaignStatus: email.campaign_status,
      recipients: ofEmail.map(recipientOf),
    }
  })
}

/** Returns the states of campaigns by their ids. */
export async function selectCampaignStates(
  handle: Handle,
  campaigns: readonly CampaignOfEmail[],
): Promise<Map<string, CampaignState>> {
  const { rows } = await sql<{ id: string; state: CampaignState }>`
    SELECT c.id, ${campaignState} AS state FROM campaigns c
    JOIN unnest(
      ${campaigns.map(({ accountId }) => accountId)}::text[], ${campaigns.map(({ id }) => id)}::text[]
    ) AS i (account_id, id) ON c.account_id = i.account_id AND c.id = i.id
  `.execute(handle)
  return new Map(rows.map(({ id, state }) => [id, state]))
}

/** Reads the current state of a sending domain; null: it was deleted. */
export async function readDomain(handle: Handle, id: string): Promise<EmailDomain | null> {
  const domain = await handle
    .selectFrom('domains')
    .select(['id', 'name', 'status', 'return_path as returnPath'])
    .where('id', '=', id)
    .executeTakeFirst()
  return domain ?? null
}

function domainOf({ domain_id, domain_name, domain_status, return_path }: Row): EmailDomain | null {
  if (domain_id === null || domain_name === null) return null
  return { id: domain_id, name: domain_name, status: domain_status, returnPath: return_path }
}

function recipientOf(row: Row): DueRecipient {
  const { position, kind, name, address, domain, status, attempt_count, next_attempt_at, due, doubts } = row
  const isSenderDead = status === 'sending'
  const mayHaveIt = isSenderDead || doubts.length > 0
  const { audience_id: audienceId, has_left: hasLeft, without_topic: withoutTopic, contact_status: ofContact } = row
  const isPending = ofContact === 'pending'
  const unsubscribed = isPending || ofContact === 'unsubscribed'
  const withheld = withholdingOf({ ...row, audienceId, hasLeft, withoutTopic, isPending, unsubscribed }, mayHaveIt)
  return {
    position,
    kind,
    name,
    address,
    domain,
    status,
    attempts: attempt_count,
    nextAttemptAt: next_attempt_at,
    triedSince: row.first_attempt_at ?? row.delayed_at,
    due,
    isAnswerLost: isSenderDead || doubts.at(-1) === 'unknown',
    mayHaveIt,
    withheld,
  }
}

/** The key of a recipient: its email and its position there. */
export type RecipientKey = { emailId: string; position: number }

/** A recipient that is sent to again although a server may already have the message. */
export type Resent = RecipientKey & {
  /** The text of the timeline entry. */
  detail: string
}

/** How late an attempt may be and still count as on time, because the queue has delays of its own. Seconds. */
const lateSeconds = 60

/** A look later than this means that the service was away: many looks at once are late by less. Seconds. */
const awaySeconds = 15 * 60
/** How long the time of a look is kept before another is noted, so that not every look writes. Seconds. */
const notedSeconds = 5 * 60

/** Returns the SQL for how late a recipient `r` is at a time, an interval. 0 up to `tolerance` seconds. */
function latenessAt(at: Date, tolerance = lateSeconds): RawBuilder<unknown> {
  return sql`
    CASE WHEN r.next_attempt_at < ${at}::timestamptz - make_interval(secs => ${sql.lit(tolerance)})
      THEN ${at}::timestamptz - r.next_attempt_at ELSE interval '0' END`
}

/**
 * Sets the status of recipients to `sending`. The caller commits this before it contacts a server, so that after a
 * crash the recipients that a server may have accepted are known. Adds a timeline entry for each one in `resent`.
 *
 * A late attempt, after the service or its relay was away or the campaign was paused, moves the beginning of the 72
 * hours by the same delay: they do not count the time in which no attempt was possible.
 */
export async function markSending(
  trx: Trx,
  { begun, resent, at }: { begun: readonly RecipientKey[]; resent: readonly Resent[]; at: Date },
): Promise<void> {
  if (begun.length === 0) return
  const ids = [...new Set(begun.map(({ emailId }) => emailId))]
  const statement = sql`
    WITH recipient AS (
      UPDATE email_recipients r SET
        status = 'sending', attempt_count = r.attempt_count + 1, next_attempt_at = NULL,
        first_attempt_at = coalesce(r.first_attempt_at + ${latenessAt(at)}, ${at}),
        delayed_at = r.delayed_at + ${latenessAt(at)}
      FROM unnest(
        ${begun.map(({ emailId }) => emailId)}::text[],
        ${begun.map(({ position }) => position)}::int[]
      ) AS i (email_id, position)
      WHERE r.email_id = i.email_id AND r.position = i.position AND r.email_id = ANY(${ids}::text[])
    ), history AS (
      INSERT INTO email_timeline (email_id, position, at, type, detail)
      SELECT email_id, position, ${at}, 'resent', detail
      FROM unnest(
        ${resent.map(({ emailId }) => emailId)}::text[],
        ${resent.map(({ position }) => position)}::int[],
        ${resent.map(({ detail }) => detail)}::text[]
      ) AS i (email_id, position, detail)
    )
    UPDATE emails SET status = 'sending', updated_at = ${at}
    WHERE id = ANY(${ids}::text[]) AND status <> 'sending'
  `
  await executePrepared(trx, { name: 'mark_sending', sendsWithNext: true }, statement)
}

/** A recipient that nothing is sent to before `nextAt`. */
export type WaitingRecipient = RecipientKey & { nextAt: Date }

/**
 * Notes the time of the next look at recipients that wait for the servers of their domain, every five minutes at most.
 * That time counts in their 72 hours. What a look is late by does not, from 15 minutes on: no look was possible then.
 */
export async function markWaiting(trx: Trx, waiting: readonly WaitingRecipient[], at: Date): Promise<void> {
  if (waiting.length === 0) return
  const ids = waiting.map(({ emailId }) => emailId)
  await sql`
    UPDATE email_recipients r SET
      next_attempt_at = i.next_at,
      first_attempt_at = r.first_attempt_at + ${latenessAt(at, awaySeconds)},
      delayed_at = r.delayed_at + ${latenessAt(at, awaySeconds)}
    FROM unnest(
      ${ids}::text[],
      ${waiting.map(({ position }) => position)}::int[],
      ${waiting.map(({ nextAt }) => nextAt)}::timestamptz[]
    ) AS i (email_id, position, next_at)
    WHERE r.email_id = i.email_id AND r.position = i.position AND r.email_id = ANY(${[...new Set(ids)]}::text[])
      AND (r.next_attempt_at < ${at}::timestamptz - make_interval(secs => ${sql.lit(notedSeconds)}) IS NOT FALSE)
  `.execute(trx)
}

/** A recipient in `sending` with the number of the attempt, which tells it from an attempt of another worker. */
export type StartedRecipient = RecipientKey & { attempt: number }

/**
 * Undoes `markSending` for recipients that nothing was sent to, and for their emails. Leaves out recipients that are
 * no longer in `sending`, and those that another worker has begun since, after the claim of this one had lapsed.
 */
export async function revertSending(trx: Trx, recipients: readonly StartedRecipient[]): Promise<void> {
  if (recipients.length === 0) return
  const ids = [...new Set(recipients.map(({ emailId }) => emailId))].sort()
  await sql`
    WITH email AS (
      SELECT id FROM emails WHERE id = ANY(${ids}::text[]) ORDER BY id FOR UPDATE
    )
    UPDATE email_recipients r SET
      status = CASE WHEN r.delayed_at IS NULL THEN 'queued' ELSE 'deferred' END,
      attempt_count = r.attempt_count - 1,
      first_attempt_at = CASE WHEN r.attempt_count > 1 THEN r.first_attempt_at END
    FROM unnest(
      ${recipients.map(({ emailId }) => emailId)}::text[],
      ${recipients.map(({ position }) => position)}::int[],
      ${recipients.map(({ attempt }) => attempt)}::int[]
    ) AS i (email_id, position, attempt)
    WHERE r.email_id = i.email_id AND r.position = i.position AND r.email_id IN (SELECT id FROM email)
      AND r.status = 'sending' AND r.attempt_count = i.attempt
  `.execute(trx)
  await refreshStatuses(trx, ids)
}

/**
 * Undoes `markSending` for recipients that are given back: they wait for their destination, or until their campaign
 * goes on, or for another process. Where the 72 hours have begun, sets `next_attempt_at` to `nextAt`, so that the time
 * in which nothing looks at them is not counted: see `markSending`.
 */
export async function revertWaiting(
  trx: Trx,
  recipients: readonly (StartedRecipient & WaitingRecipient)[],
): Promise<void> {
  if (recipients.length === 0) return
  await revertSending(trx, recipients)
  const ids = [...new Set(recipients.map(({ emailId }) => emailId))]
  await sql`
    UPDATE email_recipients r SET next_attempt_at = i.next_at
    FROM unnest(
      ${recipients.map(({ emailId }) => emailId)}::text[],
      ${recipients.map(({ position }) => position)}::int[],
      ${recipients.map(({ attempt }) => attempt)}::int[],
      ${recipients.map(({ nextAt }) => nextAt)}::timestamptz[]
    ) AS i (email_id, position, attempt, next_at)
    WHERE r.email_id = i.email_id AND r.position = i.position AND r.email_id = ANY(${ids}::text[])
      AND r.status IN ('queued', 'deferred') AND r.attempt_count = i.attempt - 1
      AND (r.attempt_count > 0 OR r.delayed_at IS NOT NULL)
  `.execute(trx)
}

/** Updates the status of emails from the statuses of their recipients. The caller holds the locks of the emails. */
async function refreshStatuses(trx: Trx, emailIds: readonly string[]): Promise<void> {
  const { rows } = await sql<{ id: string; recipients: RecipientStatus[] }>`
    SELECT email_id AS id, array_agg(status) AS recipients FROM email_recipients
    WHERE email_id = ANY(${emailIds}::text[]) GROUP BY email_id
  `.execute(trx)
  await sql`
    UPDATE emails e SET status = i.status, updated_at = now()
    FROM unnest(
      ${rows.map(({ id }) => id)}::text[],
      ${rows.map(({ recipients }) => statusOfEmail(recipients))}::text[]
    ) AS i (id, status)
    WHERE e.id = i.id AND e.id = ANY(${emailIds}::text[]) AND e.status <> i.status
  `.execute(trx)
}
