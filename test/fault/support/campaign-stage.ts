import { sql } from 'kysely'
import { z } from 'zod'
import { newId } from '../../../server/shared/ids.ts'
import type { Env } from '../../main/service-process.ts'
import { lapseClaims } from './claims.ts'
import { type MailStage, type MailStageOptions, setMailStage } from './mail-stage.ts'

/** The outcome for a person by the responses of the API so far: they get the campaign once, may get it, or do not. */
export type Fate = 'gets' | 'may' | 'nothing'

export type Person = { subscriberId: string; address: string; fate: Fate }

/** A campaign that was sent, and whom it goes to. */
export type CampaignTrial = { id: string; audienceId: string; people: Person[] }

/** An answer of the API. Null: none came, so that nobody knows whether it was done. */
export type Answer = { status: number; body: unknown } | null

/** Campaigns of a service that runs as a process of its own and sends over a scripted mail server. */
export type CampaignStage = AsyncDisposable & {
  mail: MailStage
  /** Calls the API once. */
  call(method: string, path: string, body?: unknown): Promise<Answer>
  /** Calls the API until it answers. Throws for an answer that is not of `statuses`. */
  ask(call: { method?: string; path: string; body?: unknown; statuses?: readonly number[] }): Promise<unknown>
  /**
   * Adds an audience and sends a campaign to it. Some of its people had unsubscribed or are suppressed before.
   *
   * @param options.inMs When it is to start. Default: at once.
   * @param options.isLocal Sends at a local time, which comes then for half of the people, and has come for the others.
   */
  begin(options: {
    people: number
    inMs?: number
    isLocal?: boolean
    fields?: Record<string, unknown>
  }): Promise<CampaignTrial>
  /** Has the hours in which a campaign sends end or begin, as time does. */
  setHours(trial: CampaignTrial, areNow: boolean): Promise<void>
  statusOf(trial: CampaignTrial): Promise<string>
  /** Resolves as soon as something else is written down about a campaign, or after `ms`. */
  untilChanged(trial: CampaignTrial, ms: number): Promise<void>
  /** Takes away what processes that were killed have claimed, as time does. */
  lapse(): Promise<void>
  /** The same for campaigns alone, also while a process lives. */
  lapseLeases(): Promise<void>
  /** Has the hours of A/B tests pass that wait for them, as time does. Does nothing while the database is away. */
  passHours(): Promise<void>
}

/** A test of two variants, each of which says which one it is. */
export const abTest = {
  share: 50,
  winnerBy: 'opens',
  hours: 1,
  variants: [0, 1].map((number) => ({
    name: `${number}`,
    content: { text: `Variant ${number} for {{ contact.firstName }}, leave at {{ unsubscribeUrl }}` },
  })),
} as const

const sender = 'hello@sender.test'
/** One person of so many had unsubscribed, and one is suppressed, before the campaign starts. */
const unsubscribedEvery = 16
const suppressedEvery = 25
/** Half of the people are in a zone that is ahead of the other, of a local time. */
const zones = ['UTC', 'Europe/Berlin']
const pollMs = 50

/** Hours of the day that are now, or far from now. */
export function hoursOfDay(areNow: boolean): { from: string; to: string; timezone: string } {
  const from = new Date().getUTCHours() + (areNow ? 0 : 6)
  const written = (hour: number) => `${String(hour % 24).padStart(2, '0')}:00`
  return { from: written(from), to: written(from + 2), timezone: 'UTC' }
}
const created = z.object({ id: z.string() })

export async function setCampaignStage(options: MailStageOptions): Promise<CampaignStage> {
  const env: Env = { PUBLIC_URL: 'https://mail.sender.test', ...options.env }
  const mail = await setMailStage({ ...options, env })
  const { db } = mail
  const { account_id: accountId } = await db.selectFrom('webhooks').select('account_id').executeTakeFirstOrThrow()
  let audiences = 0

  async function call(method: string, path: string, body?: unknown): Promise<Answer> {
    try {
      const response = await fetch(`${mail.service.url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${mail.key}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      return { status: response.status, body: text === '' ? null : JSON.parse(text) }
    } catch {
      return null
    }
  }

  const ask: CampaignStage['ask'] = async ({ method = 'GET', path, body, statuses = [200] }) => {
    for (;;) {
      const answer = await call(method, path, body)
      if (answer === null || answer.status === 503) await new Promise((resolve) => setTimeout(resolve, pollMs))
      else if (statuses.includes(answer.status)) return answer.body
      else throw new Error(`${method} ${path} was answered ${answer.status} ${JSON.stringify(answer.body)}`)
    }
  }

  async function addPeople(audienceId: string, count: number): Promise<Person[]> {
    const at = new Date()
    audiences += 1
    const people = Array.from({ length: count }, (_, index): Person => {
      const isLeftOut = index % unsubscribedEvery === 1 || index % suppressedEvery === 2
      const fate = isLeftOut ? 'nothing' : 'gets'
      return { subscriberId: newId('subscriber', at), address: `p${index}.a${audiences}@example.com`, fate }
    })
    await sql`
      WITH person AS (
        INSERT INTO subscribers (id, account_id, email, email_key, first_name, properties, created_at, updated_at)
        SELECT id, ${accountId}, address, address, 'Ada', jsonb_build_object('timezone', zone), ${at}, ${at}
        FROM unnest(
          ${people.map(({ subscriberId }) => subscriberId)}::text[], ${people.map(({ address }) => address)}::text[],
          ${people.map((_, index) => zones[index % zones.length])}::text[]
        ) AS i (id, address, zone)
        RETURNING id
      )
      INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
      SELECT ${audienceId}, p.id, ${accountId}, i.status, ${at}, ${at} FROM person p JOIN unnest(
        ${people.map(({ subscriberId }) => subscriberId)}::text[],
        ${people.map((_, index) => (index % unsubscribedEvery === 1 ? 'unsubscribed' : 'active'))}::text[]
      ) AS i (id, status) ON i.id = p.id
    `.execute(db)
    for (const [index, { address }] of people.entries()) {
      if (index % suppressedEvery !== 2) continue
      await ask({ method: 'POST', path: '/v1/suppressions', body: { address }, statuses: [201, 200] })
    }
    return people
  }

  async function statusOf({ id }: CampaignTrial): Promise<string> {
    const { rows } = await sql<{ status: string }>`SELECT status FROM campaigns WHERE id = ${id}`.execute(db)
    return rows[0]?.status ?? 'gone'
  }

  return {
    mail,
    call,
    ask,
    async begin({ people: count, inMs, isLocal = false, fields = {} }) {
      const name = `trial ${audiences}`
      const audience = await ask({ method: 'POST', path: '/v1/audiences', body: { name }, statuses: [201] })
      const { id: audienceId } = created.parse(audience)
      const people = await addPeople(audienceId, count)
      const body = {
        name,
        audienceId,
        from: sender,
        // The subject is the mark of an email: see mail-verdict.ts.
        subject: '{{ contact.email }}',
        content: { text: 'Hello {{ contact.firstName }}, leave at {{ unsubscribeUrl }}' },
        ...fields,
      }
      const { id } = created.parse(await ask({ method: 'POST', path: '/v1/campaigns', body, statuses: [201] }))
      const property = { key: 'timezone', type: 'string' }
      if (isLocal) await ask({ method: 'POST', path: '/v1/contact-properties', body: property, statuses: [201, 409] })
      const at = new Date(Date.now() + (inMs ?? 0)).toISOString()
      const scheduled = inMs === undefined ? {} : { scheduledAt: at }
      const when = isLocal ? { localTime: at.slice(0, 'YYYY-MM-DDThh:mm:ss'.length) } : scheduled
      await ask({ method: 'POST', path: `/v1/campaigns/${id}/send`, body: when, statuses: [202] })
      return { id, audienceId, people }
    },
    async setHours({ id }, areNow) {
      const hours = JSON.stringify(hoursOfDay(areNow))
      await sql`
        UPDATE campaigns SET send_window = (send_window::jsonb || ${hours}::jsonb)::json WHERE id = ${id}
      `.execute(db)
    },
    statusOf,
    async untilChanged({ id }, ms) {
      const look = async () => {
        const { rows } = await sql<{ seen: string }>`
          SELECT concat_ws(' ', status, ab_tested_at, ab_winner, listed_to, handled_to, recipient_count, queued_count, handed_over_count, (
            SELECT count(*) FROM campaign_recipients r WHERE r.campaign_id = c.id AND r.status <> 'waiting'
          )) AS seen FROM campaigns c WHERE id = ${id}
        `.execute(db)
        return rows[0]?.seen
      }
      const before = await look()
      for (const since = performance.now(); performance.now() - since < ms; ) {
        if ((await look()) !== before) return
        await new Promise((resolve) => setTimeout(resolve, 2))
      }
    },
    async lapse() {
      await lapseClaims(mail)
      await lapseLeases()
    },
    lapseLeases,
    passHours,
    [Symbol.asyncDispose]: () => mail[Symbol.asyncDispose](),
  }

  async function passHours(): Promise<void> {
    await sql`
      UPDATE campaigns SET ab_tested_at = ab_tested_at - make_interval(hours => ${abTest.hours}), due_at = now()
      WHERE waiting_for = 'ab_test' AND status = 'sending' AND ab_winner IS NULL
        AND ab_tested_at > now() - make_interval(hours => ${abTest.hours})
    `
      .execute(db)
      .catch(() => undefined)
  }

  async function lapseLeases(): Promise<void> {
    await sql`
      UPDATE campaigns SET due_at = now()
      WHERE due_at > now() AND (status <> 'scheduled' OR scheduled_at <= now())
    `.execute(db)
  }
}
