import { type Selectable, sql } from 'kysely'
import type { Mode } from '../../contract/mode.ts'
import { plainArray } from '../database/arrays.ts'
import { type Handle, inTransaction, type Trx } from '../database/connection.ts'
import type {
  EmailRecipientsTable,
  EmailStatus,
  SuppressionSource,
  SuppressionsTable,
} from '../database/tables/emails.ts'
import type { NewEvent, Outbox } from '../outbox/append.ts'
import { newId } from '../shared/ids.ts'
import type { Scope } from '../shared/scope.ts'
import { type LinkClick, numberLinks } from '../statistics/campaign-links.ts'
import { countRecipients, type RecipientCount } from '../statistics/count-recipients.ts'
import type { EmailFigure } from '../statistics/figures.ts'
import { isWaiting, statusOfEmail } from './email-status.ts'
import { countForVariant, type PersonVisits, writePersonVisits } from './person-visits.ts'
import type { RecipientFact } from './recipient-facts.ts'
import { figuresOf } from './recipient-figures.ts'
import { type RecipientState, type TimelineEntry, transition } from './recipient-transitions.ts'

export type RecordMeans = {
  outbox: Outbox
  /** Returns a random number from 0 to below 1, for the jitter of retries. Default: Math.random. */
  random?: () => number
  /** The source of hard bounces, for the suppression list. Default: `smtp_answer`, the reply of the mail server. */
  source?: Extract<SuppressionSource, 'smtp_answer' | 'notification'>
}

/** The work that is left for an email after its facts were recorded. */
export type Remainder = {
  emailId: string
  /** True when a recipient waits without a time for its next attempt. */
  anyQueued: boolean
  /** The time of the next attempt at a deferred recipient; null: there is none. */
  nextAt: Date | null
}

type Recipient = {
  emailId: string
  position: number
  address: string
  addressKey: string
  domain: string
  state: RecipientState
  /** The numbers of the links of its campaign that were clicked. */
  clickedLinks: number[]
  personVisits: PersonVisits
  changed: boolean
  hasNewLink: boolean
}

type Email = {
  id: string
  scope: Scope
  subject: string
  domainId: string | null
  campaignId: string | null
  /** The variant of the campaign that it tests. Null: none. */
  variant: number | null
  tags: readonly string[]
  status: EmailStatus
  recipients: Recipient[]
}

/**
 * Stores facts about recipients: their states, timeline entries, events, suppressions and statistics, atomically in
 * the transaction of `handle` or in one of its own. Facts are applied in the given order. Facts that change nothing are
 * skipped, such as a repeated notification or one about a deleted email.
 *
 * This is the only writer of these rows, wherever a fact was learned. Returns the remaining work of each email found.
 */
export async function recordFacts(
  handle: Handle,
  means: RecordMeans,
  facts: readonly RecipientFact[],
): Promise<Remainder[]> {
  if (facts.length === 0) return []
  return inTransaction(handle, async (trx) => {
    const emails = await lockEmails(trx, [...new Set(facts.map(({ emailId }) => emailId))])
    const { entries, events, suppressed, counted } = apply(emails, await withoutRepeated(trx, facts), {
      random: means.random ?? Math.random,
      numberOf: await numberLinks(trx, clicksOfCampaigns(emails, facts)),
    })
    await writeRecipients(trx, emails)
    await writeClickedLinks(trx, emails)
    await writePersonVisits(trx, recipientsOf(emails))
    await writeTimeline(trx, entries)
    await writeSuppressions(trx, suppressed, means.source ?? 'smtp_answer')
    await countRecipients(trx, counted)
    for (const { scope, events: ofScope } of events.values()) await means.outbox.append(trx, scope, ofScope)
    return [...emails.values()].map(remainderOf)
  })
}

/**
 * Returns the facts without `relayed` and `expanded` facts that the timeline already has. These two do not show in
 * the state of a recipient, so only the timeline can tell that they are repeated.
 */
async function withoutRepeated(trx: Trx, facts: readonly RecipientFact[]): Promise<readonly RecipientFact[]> {
  const isPassedOn = ({ kind }: RecipientFact) => kind === 'relayed' || kind === 'expanded'
  const ids = [...new Set(facts.filter(isPassedOn).map(({ emailId }) => emailId))]
  if (ids.length === 0) return facts
  const rows = await trx
    .selectFrom('email_timeline')
    .select(['email_id', 'position', 'type'])
    .where('email_id', 'in', ids)
    .where('type', 'in', ['relayed', 'expanded'])
    .execute()
  const told = new Set(rows.map(({ email_id: id, position, type }) => `${id} ${position} ${type}`))
  return facts.filter((fact) => {
    if (!isPassedOn(fact)) return true
    const key = `${fact.emailId} ${fact.position} ${fact.kind}`
    const isNew = !told.has(key)
    told.add(key)
    return isNew
  })
}

type Entry = TimelineEntry & { emailId: string; position: number; at: Date }
type Suppressed = { email: Email; recipient: Recipient; reason: SuppressionsTable['reason']; at: Date }
type Consequences = {
  entries: Entry[]
  /** The events by account and mode. */
  events: Map<string, { scope: Scope; events: NewEvent[] }>
  suppressed: Suppressed[]
  counted: RecipientCount[]
}

/** Changes the states in `emails` and returns the timeline entries, events, suppressions and figures that follow. */
function apply(
  emails: ReadonlyMap<string, Email>,
  facts: readonly RecipientFact[],
  { random, numberOf }: { random: () => number; numberOf: (click: LinkClick) => number },
): Consequences {
  const consequences: Consequences = { entries: [], events: new Map(), suppressed: [], counted: [] }
  for (const fact of facts) {
    const email = emails.get(fact.emailId)
    const recipient = email?.recipients[fact.position]
    if (email === undefined || recipient === undefined) continue
    const { emailId, address, domain } = recipient
    const next = transition({ emailId, address, domain, subject: email.subject }, recipient.state, fact, random())
    if (next === null) continue
    const { scope, domainId, campaignId, tags, variant: number } = email
    const figures = figuresOf(recipient.state, next)
    const variant = number === null ? null : { number, figures: countForVariant(recipient.personVisits, fact, figures) }
    const about = { scope, domainId, campaignId, tags, recipientDomain: domain, at: fact.at, figures, variant }
    const click = clickOf(email, fact)
    consequences.counted.push(
      click === null ? about : { ...about, link: countLink(recipient, numberOf(click), figures) },
    )
    recipient.state = next.state
    recipient.changed = true
    const { position, at } = fact
    consequences.entries.push(...next.timeline.map((entry) => ({ ...entry, emailId, position, at })))
    const key = `${scope.accountId} ${scope.mode}`
    const ofScope = consequences.events.get(key) ?? { scope, events: [] }
    ofScope.events.push(...next.events)
    consequences.events.set(key, ofScope)
    if (next.suppress !== null) consequences.suppressed.push({ email, recipient, reason: next.suppress, at })
  }
  return consequences
}

function clicksOfCampaigns(emails: ReadonlyMap<string, Email>, facts: readonly RecipientFact[]): LinkClick[] {
  return facts.map((fact) => clickOf(emails.get(fact.emailId), fact)).filter((click) => click !== null)
}

/** Returns the click on a link of a campaign; null: the fact is none. */
function clickOf(email: Email | undefined, fact: RecipientFact): LinkClick | null {
  if (fact.kind !== 'clicked' || email === undefined || email.campaignId === null) return null
  return { accountId: email.scope.accountId, campaignId: email.campaignId, link: fact.link }
}

/** Notes which link was clicked. Returns what counts for that link, where a person counts once. */
function countLink(recipient: Recipient, number: number, figures: readonly EmailFigure[]) {
  const isFirst = !recipient.clickedLinks.includes(number)
  if (isFirst) {
    recipient.clickedLinks.push(number)
    recipient.hasNewLink = true
  }
  const clicks = figures.filter((figure) => figure === 'clicks' || figure === 'automated_clicks')
  return { number, figures: isFirst ? (['clicked', ...clicks] as const) : clicks }
}

function remainderOf({ id, recipients }: Email): Remainder {
  const waiting = recipients.filter(({ state }) => isWaiting(state.status))
  const times = waiting.flatMap(({ state }) => (state.nextAttemptAt === null ? [] : [state.nextAttemptAt.getTime()]))
  return {
    emailId: id,
    anyQueued: times.length < waiting.length,
    nextAt: times.length === 0 ? null : new Date(Math.min(...times)),
  }
}

type Row = Omit<Selectable<EmailRecipientsTable>, 'kind' | 'name' | 'unsubscribed_at'> & {
  mode: Mode
  domain_id: string | null
  campaign_id: string | null
  variant: number | null
  tags: string[]
  subject: string
  email_status: EmailStatus
}

/** Locks and reads emails with all their recipients, in the order that every locker uses, which avoids deadlocks. */
async function lockEmails(trx: Trx, emailIds: readonly string[]): Promise<Map<string, Email>> {
  const { rows } = await sql<Row>`
    SELECT e.id AS email_id, e.account_id, e.mode, e.domain_id, e.campaign_id, e.variant, e.tags, e.subject, e.status AS email_status,
      r.position, r.address, r.address_key, r.domain, r.status, r.attempt_count, r.first_attempt_at, r.next_attempt_at,
      r.reason, r.withheld_for, r.delayed_at, r.accepted_at, r.delivered_at, r.opened_at, r.clicked_at, r.complained_at,
      r.clicked_links, r.opened_by_person, r.clicked_by_person
    FROM emails e JOIN email_recipients r ON r.email_id = e.id
    WHERE e.id = ANY(${emailIds}::text[]) AND r.email_id = ANY(${emailIds}::text[])
    ORDER BY e.id, r.position
    FOR UPDATE
  `.execute(trx)
  const emails = new Map<string, Email>()
  for (const row of rows) {
    const { email_id: id, account_id: accountId, mode, subject, email_status: status } = row
    const email = emails.get(id) ?? {
      id,
      scope: { accountId, mode },
      domainId: row.domain_id,
      campaignId: row.campaign_id,
      variant: row.variant,
      tags: row.tags,
      subject,
      status,
      recipients: [],
    }
    emails.set(id, email)
    email.recipients[row.position] = {
      emailId: id,
      position: row.position,
      address: row.address,
      addressKey: row.address_key,
      domain: row.domain,
      clickedLinks: row.clicked_links ?? [],
      personVisits: { opened: row.opened_by_person === true, clicked: row.clicked_by_person === true, isNew: false },
      changed: false,
      hasNewLink: false,
      state: {
        status: row.status,
        attemptCount: row.attempt_count,
        firstAttemptAt: row.first_attempt_at,
        nextAttemptAt: row.next_attempt_at,
        reason: row.reason,
        withheldFor: row.withheld_for,
        delayedAt: row.delayed_at,
        acceptedAt: row.accepted_at,
        deliveredAt: row.delivered_at,
        openedAt: row.opened_at,
        clickedAt: row.clicked_at,
        complainedAt: row.complained_at,
      },
    }
  }
  return emails
}

function recipientsOf(emails: ReadonlyMap<string, Email>): Recipient[] {
  return [...emails.values()].flatMap(({ recipients }) => recipients)
}

async function writeRecipients(trx: Trx, emails: ReadonlyMap<string, Email>): Promise<void> {
  const changed = recipientsOf(emails).filter((one) => one.changed)
  if (changed.length === 0) return
  const states = changed.map(({ state }) => state)
  const ids = [...new Set(changed.map(({ emailId }) => emailId))]
  const statuses = ids.map((id) =>
    statusOfEmail(emails.get(id)?.recipients.map(({ state }) => state.status) ?? ['failed']),
  )
  await sql`
    WITH recipient AS (
      UPDATE email_recipients r SET
        status = i.status, next_attempt_at = i.next_attempt_at, reason = i.reason, withheld_for = i.withheld_for, delayed_at = i.delayed_at,
        accepted_at = i.accepted_at, delivered_at = i.delivered_at, opened_at = i.opened_at,
        clicked_at = i.clicked_at, complained_at = i.complained_at
      FROM unnest(
        ${changed.map(({ emailId }) => emailId)}::text[],
        ${changed.map(({ position }) => position)}::int[],
        ${states.map(({ status }) => status)}::text[],
        ${states.map(({ nextAttemptAt }) => nextAttemptAt)}::timestamptz[],
        ${states.map(({ reason }) => reason)}::text[],
        ${states.map(({ withheldFor }) => withheldFor)}::text[],
        ${states.map(({ delayedAt }) => delayedAt)}::timestamptz[],
        ${states.map(({ acceptedAt }) => acceptedAt)}::timestamptz[],
        ${states.map(({ deliveredAt }) => deliveredAt)}::timestamptz[],
        ${states.map(({ openedAt }) => openedAt)}::timestamptz[],
        ${states.map(({ clickedAt }) => clickedAt)}::timestamptz[],
        ${states.map(({ complainedAt }) => complainedAt)}::timestamptz[]
      ) AS i (email_id, position, status, next_attempt_at, reason, withheld_for, delayed_at, accepted_at, delivered_at,
        opened_at, clicked_at, complained_at)
      -- Repeated so that the planner uses an index, however old its statistics are.
      WHERE r.email_id = i.email_id AND r.position = i.position AND r.email_id = ANY(${ids}::text[])
    )
    UPDATE emails e SET
      status = i.status,
      updated_at = now(),
      completed_at = CASE WHEN i.status IN ('queued', 'sending') THEN NULL ELSE coalesce(e.completed_at, now()) END
    FROM unnest(${ids}::text[], ${statuses}::text[]) AS i (id, status)
    WHERE e.id = i.id AND e.id = ANY(${ids}::text[]) AND e.status <> i.status
  `.execute(trx)
}

/** A statement of its own: most batches have no click on a link of a campaign. */
async function writeClickedLinks(trx: Trx, emails: ReadonlyMap<string, Email>): Promise<void> {
  const changed = recipientsOf(emails).filter((one) => one.hasNewLink)
  if (changed.length === 0) return
  const ids = changed.map(({ emailId }) => emailId)
  await sql`
    UPDATE email_recipients r SET clicked_links = i.clicked_links::smallint[]
    FROM unnest(
      ${ids}::text[],
      ${changed.map(({ position }) => position)}::int[],
      ${changed.map(({ clickedLinks }) => plainArray(clickedLinks))}::text[]
    ) AS i (email_id, position, clicked_links)
    -- Repeated, as above.
    WHERE r.email_id = i.email_id AND r.position = i.position AND r.email_id = ANY(${[...new Set(ids)]}::text[])
  `.execute(trx)
}

async function writeTimeline(trx: Trx, entries: readonly Entry[]): Promise<void> {
  if (entries.length === 0) return
  await sql`
    INSERT INTO email_timeline (email_id, position, at, type, detail, reply, host)
    SELECT * FROM unnest(
      ${entries.map(({ emailId }) => emailId)}::text[],
      ${entries.map(({ position }) => position)}::int[],
      ${entries.map(({ at }) => at)}::timestamptz[],
      ${entries.map(({ type }) => type)}::text[],
      ${entries.map(({ detail }) => detail)}::text[],
      ${entries.map(({ reply }) => reply)}::text[],
      ${entries.map(({ host }) => host)}::text[]
    )
  `.execute(trx)
}

/**
 * Stores suppressions. A complaint replaces any entry, and every reason replaces an unsubscribe, which is kept in
 * columns of its own: see `deleteSuppression`. Otherwise an existing entry stays as it is.
 */
async function writeSuppressions(
  trx: Trx,
  suppressed: readonly Suppressed[],
  bounceSource: SuppressionSource,
): Promise<void> {
  if (suppressed.length === 0) return
  // One entry per address, complaints first: one statement cannot change a row twice.
  const byKey = new Map<string, Suppressed>()
  for (const one of suppressed) {
    const key = `${one.email.scope.accountId} ${one.recipient.addressKey}`
    if (!byKey.has(key) || one.reason === 'complaint') byKey.set(key, one)
  }
  const ones = [...byKey].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
  await sql`
    INSERT INTO suppressions (id, account_id, address, address_key, reason, source, email_id, created_at)
    SELECT * FROM unnest(
      ${ones.map(({ at }) => newId('suppression', at))}::text[],
      ${ones.map(({ email }) => email.scope.accountId)}::text[],
      ${ones.map(({ recipient }) => recipient.address)}::text[],
      ${ones.map(({ recipient }) => recipient.addressKey)}::text[],
      ${ones.map(({ reason }) => reason)}::text[],
      ${ones.map(({ reason }) => (reason === 'complaint' ? 'feedback_report' : bounceSource))}::text[],
      ${ones.map(({ email }) => email.id)}::text[],
      ${ones.map(({ at }) => at)}::timestamptz[]
    )
    ON CONFLICT (account_id, address_key) DO UPDATE SET
      reason = excluded.reason, source = excluded.source, email_id = excluded.email_id,
      unsubscribed_at = CASE suppressions.reason
        WHEN 'unsubscribe' THEN suppressions.created_at ELSE suppressions.unsubscribed_at END,
      unsubscribe_email_id = CASE suppressions.reason
        WHEN 'unsubscribe' THEN suppressions.email_id ELSE suppressions.unsubscribe_email_id END
    WHERE excluded.reason = 'complaint' OR suppressions.reason = 'unsubscribe'
  `.execute(trx)
}
