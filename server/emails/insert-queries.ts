import { textArrays } from '../database/arrays.ts'
import type { Trx } from '../database/connection.ts'
import { prepare } from '../database/prepared.ts'
import { subjectKey } from '../message/subject-key.ts'
import type { SendingScope } from './eligibility.ts'
import { pairsOf } from './metadata.ts'
import type { NewEmail } from './new-email.ts'

/** Columns of the rows to insert, one array each. The `owner` of a row is the id of its email. */
type Columns = Awaited<ReturnType<typeof textColumnsOf>> & {
  accountId: string
  mode: string
  at: Date
  ids: readonly string[]
  statuses: readonly string[]
  domainIds: readonly (string | null)[]
  pairOwners: readonly string[]
  audienceIds: readonly (string | null)[]
  topicIds: readonly (string | null)[]
  campaignIds: readonly (string | null)[]
  variants: readonly (number | null)[]
  trackOpens: readonly boolean[]
  trackClicks: readonly boolean[]
  scheduledAts: readonly (Date | null)[]
  completedAts: readonly (Date | null)[]
  owners: readonly string[]
  positions: readonly number[]
  kinds: readonly string[]
  recipientStatuses: readonly string[]
  dueAts: readonly (Date | null)[]
  timelineOwners: readonly string[]
  timelinePositions: readonly (number | null)[]
  timelineTypes: readonly string[]
  timelineDetails: readonly (string | null)[]
}

const insertRows = prepare<Columns>({ name: 'insert_emails', sendsWithNext: true })`
  WITH email AS (
    INSERT INTO emails (id, account_id, mode, status, domain_id, sender, subject, message_id, tags, metadata, audience_id,
      topic_id, campaign_id, variant, track_opens, track_clicks, scheduled_at, completed_at, created_at, updated_at)
    SELECT e.id, ${'accountId'}, ${'mode'}, e.status, e.domain_id, e.sender, e.subject, e.message_id,
      ARRAY(SELECT jsonb_array_elements_text(e.tags::jsonb)), e.metadata::jsonb, e.audience_id,
      e.topic_id, e.campaign_id, e.variant, e.track_opens, e.track_clicks, e.scheduled_at,
      e.completed_at, ${'at'}, ${'at'}
    FROM unnest(${'ids'}::text[], ${'statuses'}::text[], ${'domainIds'}::text[], ${'senders'}::text[],
      ${'subjects'}::text[], ${'messageIds'}::text[], ${'tags'}::text[], ${'metadata'}::text[], ${'audienceIds'}::text[],
      ${'topicIds'}::text[], ${'campaignIds'}::text[], ${'variants'}::smallint[], ${'trackOpens'}::bool[],
      ${'trackClicks'}::bool[], ${'scheduledAts'}::timestamptz[], ${'completedAts'}::timestamptz[])
      AS e (id, status, domain_id, sender, subject, message_id, tags, metadata, audience_id, topic_id, campaign_id, variant,
        track_opens, track_clicks, scheduled_at, completed_at)
  ), content AS (
    INSERT INTO email_contents (email_id, reply_to, headers, html, text)
    SELECT c.id, ARRAY(SELECT jsonb_array_elements_text(c.reply_to::jsonb)), c.headers::jsonb, c.html, c.text
    FROM unnest(${'ids'}::text[], ${'replyTos'}::text[], ${'headers'}::text[], ${'htmls'}::text[], ${'texts'}::text[])
      AS c (id, reply_to, headers, html, text)
  ), pair AS (
    INSERT INTO email_metadata (account_id, pair, email_id)
    SELECT ${'accountId'}, p.pair, p.email_id
    FROM unnest(${'pairOwners'}::text[], ${'pairs'}::text[]) AS p (email_id, pair)
  ), subject AS (
    INSERT INTO email_subjects (account_id, mode, subject_key, email_id)
    SELECT ${'accountId'}, ${'mode'}, s.subject_key, s.email_id
    FROM unnest(${'ids'}::text[], ${'subjectKeys'}::text[]) AS s (email_id, subject_key) WHERE s.subject_key <> ''
  ), recipient AS (
    INSERT INTO email_recipients (email_id, position, account_id, kind, name, address, address_key, domain, status,
      next_attempt_at, reason)
    SELECT r.email_id, r.position, ${'accountId'}, r.kind, r.name, r.address, r.address_key, r.domain, r.status,
      r.due_at, r.reason
    FROM unnest(${'owners'}::text[], ${'positions'}::int[], ${'kinds'}::text[], ${'names'}::text[],
      ${'addresses'}::text[], ${'addressKeys'}::text[], ${'domains'}::text[], ${'recipientStatuses'}::text[],
      ${'dueAts'}::timestamptz[], ${'reasons'}::text[])
      AS r (email_id, position, kind, name, address, address_key, domain, status, due_at, reason)
  )
  INSERT INTO email_timeline (email_id, position, at, type, detail)
  SELECT t.email_id, t.position, ${'at'}, t.type, t.detail
  FROM unnest(${'timelineOwners'}::text[], ${'timelinePositions'}::int[], ${'timelineTypes'}::text[],
    ${'timelineDetails'}::text[]) AS t (email_id, position, type, detail)
`

/** Inserts one attachment. An array of attachments would encode the bytes as hexadecimal text. */
const insertAttachment = prepare<{
  emailId: string
  position: number
  filename: string
  contentType: string
  contentId: string | null
  content: Buffer
}>({ name: 'insert_attachment', sendsWithNext: true })`
  INSERT INTO email_attachments (email_id, position, filename, content_type, content_id, content)
  VALUES (${'emailId'}, ${'position'}, ${'filename'}, ${'contentType'}, ${'contentId'}, ${'content'})
`

/** Inserts new emails with their contents, recipients and first timeline entries. Sent with the next statement. */
export async function insertEmails(
  trx: Trx,
  sender: SendingScope,
  emails: readonly NewEmail[],
  at: Date,
): Promise<void> {
  await insertRows(trx, await columnsOf(sender, emails, at))
  for (const { id, content } of emails) {
    for (const [position, attachment] of content.attachments.entries()) {
      await insertAttachment(trx, { emailId: id, position, ...attachment })
    }
  }
}

async function columnsOf({ accountId, mode }: SendingScope, emails: readonly NewEmail[], at: Date): Promise<Columns> {
  const contents = emails.map(({ content }) => content)
  const recipients = emails.flatMap(({ id, recipients: ofEmail, content }) =>
    ofEmail.map((recipient, position) => ({ ...recipient, owner: id, position, scheduledAt: content.scheduledAt })),
  )
  const pairs = emails.flatMap(({ id, content }) => pairsOf(content.metadata).map((pair) => ({ owner: id, pair })))
  const timeline = emails.flatMap((email) => historyOf(email))
  return {
    accountId,
    mode,
    at,
    ids: emails.map(({ id }) => id),
    statuses: emails.map(({ status }) => status),
    domainIds: emails.map(({ domainId }) => domainId),
    pairOwners: pairs.map(({ owner }) => owner),
    audienceIds: contents.map(({ audienceId }) => audienceId),
    topicIds: contents.map(({ topicId }) => topicId),
    campaignIds: emails.map(({ campaignId }) => campaignId),
    variants: emails.map(({ variant }) => variant),
    trackOpens: contents.map(({ trackOpens }) => trackOpens),
    trackClicks: contents.map(({ trackClicks }) => trackClicks),
    scheduledAts: contents.map(({ scheduledAt }) => scheduledAt),
    completedAts: emails.map(({ waits }) => (waits ? null : at)),
    owners: recipients.map(({ owner }) => owner),
    positions: recipients.map(({ position }) => position),
    kinds: recipients.map(({ kind }) => kind),
    recipientStatuses: recipients.map(({ status }) => status),
    // The worker compares this time: a claim from before a rescheduling then ends without sending.
    dueAts: recipients.map(({ status, scheduledAt }) => (status === 'queued' ? scheduledAt : null)),
    timelineOwners: timeline.map(({ owner }) => owner),
    timelinePositions: timeline.map(({ position }) => position),
    timelineTypes: timeline.map(({ type }) => type),
    timelineDetails: timeline.map(({ detail }) => detail),
    ...(await textColumnsOf(emails, { recipients, pairs })),
  }
}

/** Returns the columns with texts from the client, which may be large. */
function textColumnsOf(
  emails: readonly NewEmail[],
  { recipients, pairs }: { recipients: readonly NewEmail['recipients'][number][]; pairs: readonly { pair: string }[] },
) {
  const contents = emails.map(({ content }) => content)
  return textArrays({
    senders: emails.map(({ sender }) => sender),
    subjects: contents.map(({ subject }) => subject),
    subjectKeys: contents.map(({ subject }) => subjectKey(subject)),
    messageIds: emails.map(({ messageId }) => messageId),
    tags: contents.map(({ tags }) => JSON.stringify(tags)),
    metadata: contents.map(({ metadata }) => JSON.stringify(metadata)),
    pairs: pairs.map(({ pair }) => pair),
    replyTos: contents.map(({ replyTo }) => JSON.stringify(replyTo)),
    headers: contents.map(({ headers }) => JSON.stringify(headers)),
    htmls: contents.map(({ html }) => html),
    texts: contents.map(({ text }) => text),
    names: recipients.map(({ name }) => name),
    addresses: recipients.map(({ address }) => address),
    addressKeys: recipients.map(({ key }) => key),
    domains: recipients.map(({ domain }) => domain),
    reasons: recipients.map(({ reason }) => reason),
  })
}

type History = { owner: string; position: number | null; type: string; detail: string | null }

function historyOf({ id, status, recipients, content }: NewEmail): History[] {
  const detail =
    status === 'scheduled' && content.scheduledAt !== null ? `For ${content.scheduledAt.toISOString()}.` : null
  const whole = status === 'suppressed' ? [] : [{ owner: id, position: null, type: status, detail }]
  const suppressed = recipients.flatMap(({ status: ofRecipient, reason }, position) =>
    ofRecipient === 'suppressed' ? [{ owner: id, position, type: 'suppressed', detail: reason }] : [],
  )
  return [...whole, ...suppressed]
}
