import { sql } from 'kysely'
import type { CreateCampaign } from '../../../contract/campaign-resource.ts'
import { createEngine } from '../../../server/campaigns/engine.ts'
import { claimCampaigns } from '../../../server/campaigns/engine-queries.ts'
import { guardUsedSegment } from '../../../server/campaigns/in-use.ts'
import { createCampaignService } from '../../../server/campaigns/service.ts'
import { inTransaction } from '../../../server/database/connection.ts'
import { lacksDmarc } from '../../../server/domains/service.ts'
import { type Plan, planOf } from '../../../server/email-delivery/conversation-plan.ts'
import { recordFacts } from '../../../server/email-delivery/record-facts.ts'
import { lockDue, markSending } from '../../../server/email-delivery/sending-queries.ts'
import { createMailTokens } from '../../../server/message/mail-tokens.ts'
import type { TemplateRenderer } from '../../../server/rendering/renderer.ts'
import { createSegmentService } from '../../../server/segments/service.ts'
import { newId } from '../../../server/shared/ids.ts'
import { createContactPropertyService } from '../../../server/subscribers/property-service.ts'
import { createRendererTurns } from '../../../server/templates/renderer-turns.ts'
import { createEmailWorld } from './emails.ts'

export type CampaignWorld = Awaited<ReturnType<typeof createCampaignWorld>>

const key = Buffer.alloc(32, 2)
const leaseMs = 30_000

/** Campaigns over emails, people and a queue of their own, with a clock that is moved by hand. Nothing is sent. */
export async function createCampaignWorld(renderer: TemplateRenderer) {
  const emailWorld = await createEmailWorld()
  const { db, time, outbox, emails, account, live } = emailWorld
  const tokens = createMailTokens(key)
  const means = {
    db,
    clock: time.clock,
    outbox,
    renderer,
    rendererOf: createRendererTurns(renderer),
    emails,
    lacksDmarc,
    unsubscribeUrl: (ref: Parameters<typeof tokens.unsubscribe>[0]) =>
      `https://mail.example/u/${tokens.unsubscribe(ref)}`,
    webUrl: (ref: Parameters<typeof tokens.messagePage>[0]) => `https://mail.example/w/${tokens.messagePage(ref)}`,
    archiveUrl: (ref: Parameters<typeof tokens.campaignPage>[0]) =>
      `https://mail.example/a/${tokens.campaignPage(ref)}`,
  }
  const campaigns = createCampaignService(means)

  async function addAudience(people: number, { domain = 'example.org' } = {}): Promise<string> {
    const audience = await emailWorld.audiences.create(db, live, { name: 'News' })
    await addPeople(audience.id, people, domain)
    return audience.id
  }

  /** Adds active people, past the API, because there may be many. */
  async function addPeople(audienceId: string, count: number, domain = 'example.org'): Promise<string[]> {
    const at = time.clock.now()
    const ids = Array.from({ length: count }, () => newId('subscriber', at))
    await sql`
      WITH person AS (
        INSERT INTO subscribers (id, account_id, email, email_key, first_name, created_at, updated_at)
        SELECT id, ${account}, address, address, 'Ada', ${at}, ${at} FROM unnest(${ids}::text[]) AS i (id),
          LATERAL (SELECT id || ${`@${domain}`} AS address) AS a
        RETURNING id
      )
      INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
      SELECT ${audienceId}, id, ${account}, 'active', ${at}, ${at} FROM person
    `.execute(db)
    return ids
  }

  async function draft(audienceId: string, fields: Partial<CreateCampaign> = {}): Promise<string> {
    const subject = fields.templateId ? null : 'Spring'
    const campaign = { name: 'Spring news', audienceId, from: 'Shop <hello@shop.test>', subject, ...fields }
    const content = fields.templateId ? {} : { content: { text: 'Spring is here.' } }
    const { id } = await campaigns.create(db, live, { ...content, ...campaign })
    return id
  }

  const engine = createEngine(means)

  /** Gives each campaign that is due one turn, as a worker does. Returns how many there were. */
  async function turn(take = engine): Promise<number> {
    const claimed = await claimCampaigns(db, 10, leaseMs)
    for (const campaign of claimed) await take(campaign)
    return claimed.length
  }

  /** Gives turns until no campaign is due at the time that it is. */
  async function run(): Promise<void> {
    while ((await turn()) > 0);
  }

  /** As mail servers do: takes the first emails that wait, all by default. Returns how many there were. */
  async function handOver(most = Number.MAX_SAFE_INTEGER): Promise<number> {
    const { rows } = await sql<{ email_id: string }>`
      SELECT email_id FROM email_recipients WHERE status = 'queued' ORDER BY email_id LIMIT ${most}
    `.execute(db)
    const at = time.clock.now()
    const accepted = {
      kind: 'accepted',
      final: true,
      reply: '250 OK',
      host: 'mx.example.org',
      position: 0,
      at,
    } as const
    await recordFacts(
      db,
      { outbox },
      rows.map((row) => ({ ...accepted, emailId: row.email_id })),
    )
    return rows.length
  }

  const onlyEmail = () => db.selectFrom('emails').select('id').executeTakeFirstOrThrow()

  /** Records a reply of a mail server to the only email: to try again later, or that it is accepted. */
  async function told(kind: 'deferred' | 'accepted'): Promise<void> {
    const { id } = await onlyEmail()
    const place = { emailId: id, position: 0, at: time.clock.now(), host: 'mx.example.org' }
    const reply = kind === 'deferred' ? '450 Later' : '250 OK'
    await inTransaction(db, async (trx) => {
      await markSending(trx, { begun: [place], resent: [], at: place.at })
    })
    const fact =
      kind === 'deferred'
        ? { ...place, kind, reason: reply, reply, unknown: false }
        : { ...place, kind, final: true, reply }
    await recordFacts(db, { outbox }, [fact])
  }

  /** Returns the plan of a worker for the only email. */
  async function planned(): Promise<Plan> {
    const { id } = await onlyEmail()
    const [email] = await inTransaction(db, (trx) => lockDue(trx, [id]))
    if (email === undefined) throw new Error('the email is gone')
    const routes = { destinationOf: (domain: string) => domain, unusable: () => null, take: () => () => undefined }
    return planOf(email, { lane: 'bulk', personal: true, obstacle: null }, routes)
  }

  /** Has all queued emails leave, and the campaigns notice it, until none is left to be made now. */
  async function deliver(): Promise<void> {
    let handed = 1
    while (handed > 0) {
      await run()
      handed = await handOver()
      await time.advance(1_000)
    }
    await run()
  }

  return {
    ...emailWorld,
    means,
    campaigns,
    segments: createSegmentService({ clock: time.clock, guardUsed: guardUsedSegment }),
    properties: createContactPropertyService({ clock: time.clock }),
    addAudience,
    addPeople,
    draft,
    turn,
    run,
    /** Starts a campaign now. */
    async start(id: string): Promise<void> {
      await campaigns.send(db, live, id, null)
    },
    handOver,
    told,
    planned,
    deliver,
    /** How many recipients have which status. */
    async statuses(): Promise<Record<string, number>> {
      const { rows } = await sql<{ status: string; count: number }>`
        SELECT status, count(*)::int AS count FROM campaign_recipients GROUP BY status ORDER BY status
      `.execute(db)
      return Object.fromEntries(rows.map(({ status, count }) => [status, count]))
    },
    /** To whom emails were made, in order. */
    async written(): Promise<string[]> {
      const rows = await db.selectFrom('email_recipients').select('address').orderBy('address').execute()
      return rows.map(({ address }) => address)
    },
    async events(): Promise<{ type: string; recipients: unknown }[]> {
      const rows = await db
        .selectFrom('events')
        .select(['type', 'body'])
        .where('type', 'like', 'campaign.%')
        .orderBy('id')
        .execute()
      return rows.map(({ type, body }) => ({ type, recipients: JSON.parse(body).data.recipients }))
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await emailWorld.end()
    },
  }
}
