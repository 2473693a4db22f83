import { crc32 } from 'node:zlib'
import { sql } from 'kysely'
import { z } from 'zod'
import { priorityOfRetry } from '../../../server/queue/priority-ranges.ts'
import { newId, uuidOf } from '../../../server/shared/ids.ts'
import type { Env } from '../../main/service-process.ts'
import {
  abTestHours,
  abTestOf,
  type CampaignFeatures,
  factsOf,
  noFeatures,
  type Outcome,
  outcomeOf,
  ownSubject,
  segments,
  templateSubject,
  textOf,
  throttlePerHour,
  tierProperty,
} from './campaign-features.ts'
import { lapseClaims } from './claims.ts'
import { type MailStage, type MailStageOptions, setMailStage } from './mail-stage.ts'
import { rounds } from './rounds.ts'
import { createRandom } from './seeded-random.ts'

/** The outcome for a person by the responses of the API so far: they get the campaign once, may get it, or do not. */
export type Fate = 'gets' | 'may' | 'nothing'

/** `outcome`: what the campaign says of the person at its end; null: that depends on when they changed. */
export type Person = { subscriberId: string; address: string; fate: Fate; outcome: Outcome | null }

/** A campaign that was sent, whom it goes to, and what it is made of. */
export type CampaignTrial = CampaignParts & {
  id: string
  audienceId: string
  people: Person[]
  features: CampaignFeatures
  /** Whether somebody has asked to pause it. */
  wasPaused: boolean
  /** Whether somebody has asked to cancel it, and does not know whether it is. */
  mayBeCanceled: boolean
}

type CampaignParts = { segmentIds: string[]; topicId: string | null; templateIds: string[] }

/** An answer of the API. Null: none came, so that nobody knows whether it was done. */
export type Answer = { status: number; body: unknown } | null

/**
 * Campaigns of a service that runs as a process of its own and sends over a scripted mail server, which refuses some
 * people for now.
 */
export type CampaignStage = AsyncDisposable & {
  mail: MailStage
  /** How often the mail server refused an address for now. */
  refused: ReadonlyMap<string, number>
  /** Calls the API once. */
  call(method: string, path: string, body?: unknown): Promise<Answer>
  /** Calls the API until it answers. Throws for an answer that is not of `statuses`. */
  ask(call: { method?: string; path: string; body?: unknown; statuses?: readonly number[] }): Promise<unknown>
  /**
   * Adds an audience and sends a campaign to it. Some of its people had unsubscribed or are suppressed before.
   *
   * @param options.features Default: none.
   * @param options.inMs When it is to start. Default: at once.
   * @param options.isLocal Sends at a local time, which comes then for half of the people, and has come for the others.
   */
  begin(options: {
    people: number
    features?: CampaignFeatures
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
  /**
   * Has the hours of A/B tests pass that wait for them, and two seconds of throttles that have no slot left, as time
   * does. Does nothing while the database is away.
   */
  passTime(): Promise<void>
  /**
   * Has the time come to try those again whom the mail server refused, of campaigns that have ended. Does nothing while
   * the database is away.
   */
  passRetries(): Promise<void>
  /** Returns how much time has passed for the throttle of a campaign besides the time of the clock. Milliseconds. */
  passedOf(trial: CampaignTrial): number
}

const sender = 'hello@sender.test'
/** A throttle gives back slots for so long: see server/campaigns/throttle.ts. Milliseconds. */
export const throttleSlackMs = 2_000
/** Half of the people are in a zone that is ahead of the other, of a local time. */
const zones = ['UTC', 'Europe/Berlin']
const pollMs = 50
/** The share of people whom the mail server refuses for now when it is asked, and how often it does so to one. */
const refusedShare = 1 / 12
const mostRefusals = rounds({ short: 1, long: 2 })
/** The time of a retry is in whole seconds: see server/queue/priority-ranges.ts. Milliseconds. */
const retrySlackMs = 1_000

/** Chosen by the address alone, so that a test that fails has the same people refused when it is run again. */
function isRefused(address: string, before: number): boolean {
  return createRandom(crc32(`${before} ${address}`)).number(1) < refusedShare
}

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
  /** The campaigns with a throttle, and the time that `passTime` has had pass for them. Milliseconds. */
  const passed = new Map<string, number>()
  const refused = new Map<string, number>()
  mail.server.at('rcpt', ({ argument: address }) => {
    const before = refused.get(address) ?? 0
    if (before === mostRefusals || !isRefused(address, before)) return undefined
    refused.set(address, before + 1)
    return '451 4.7.1 Greylisted, come back later'
  })

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

  async function create(path: string, body: unknown): Promise<string> {
    return created.parse(await ask({ method: 'POST', path, body, statuses: [201] })).id
  }

  async function addPeople(audienceId: string, count: number, features: CampaignFeatures): Promise<Person[]> {
    const at = new Date()
    audiences += 1
    const people = Array.from({ length: count }, (_, place): Person => {
      const outcome = outcomeOf(factsOf(place), features)
      const fate = outcome === 'handed_over' ? 'gets' : 'nothing'
      const address = `p${place}.a${audiences}@example.com`
      return { subscriberId: newId('subscriber', at), address, fate, outcome }
    })
    const facts = people.map((_, place) => factsOf(place))
    await sql`
      WITH person AS (
        INSERT INTO subscribers (
          id, account_id, email, email_key, first_name, last_name, properties, created_at, updated_at
        )
        SELECT id, ${accountId}, address, address, first_name, last_name,
          jsonb_build_object('timezone', zone, ${tierProperty.key}::text, tier), ${at}, ${at}
        FROM unnest(
          ${people.map(({ subscriberId }) => subscriberId)}::text[], ${people.map(({ address }) => address)}::text[],
          ${facts.map(({ firstName }) => firstName)}::text[], ${facts.map(({ lastName }) => lastName)}::text[],
          ${people.map((_, place) => zones[place % zones.length])}::text[], ${facts.map(({ tier }) => tier)}::int[]
        ) AS i (id, address, first_name, last_name, zone, tier)
        RETURNING id
      )
      INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
      SELECT ${audienceId}, p.id, ${accountId}, i.status, ${at}, ${at} FROM person p JOIN unnest(
        ${people.map(({ subscriberId }) => subscriberId)}::text[],
        ${facts.map(({ hasUnsubscribed }) => (hasUnsubscribed ? 'unsubscribed' : 'active'))}::text[]
      ) AS i (id, status) ON i.id = p.id
    `.execute(db)
    for (const [place, { address }] of people.entries()) {
      if (!factsOf(place).isSuppressed) continue
      await ask({ method: 'POST', path: '/v1/suppressions', body: { address }, statuses: [201, 200] })
    }
    return people
  }

  /** Adds what a campaign with these features needs besides its audience. */
  async function addParts(audienceId: string, people: readonly Person[], features: CampaignFeatures) {
    const parts: CampaignParts = { segmentIds: [], topicId: null, templateIds: [] }
    const name = `of ${audienceId}`
    if (features.hasSegments) {
      await ask({ method: 'POST', path: '/v1/contact-properties', body: tierProperty, statuses: [201, 409] })
      for (const { conditions } of segments) {
        parts.segmentIds.push(await create('/v1/segments', { audienceId, name, conditions }))
      }
    }
    if (features.topic !== null) {
      parts.topicId = await create('/v1/topics', { name, default: features.topic })
      const chosen = features.topic === 'opt_in'
      const ids = people.filter((_, place) => factsOf(place).getsTopic === chosen).map((one) => one.subscriberId)
      await sql`
        INSERT INTO topic_choices (account_id, subscriber_id, topic_id, subscribed, changed_at)
        SELECT ${accountId}, id, ${parts.topicId}, ${chosen}, now() FROM unnest(${ids}::text[]) AS i (id)
      `.execute(db)
    }
    if (features.hasTemplate) {
      const own = { name, subject: templateSubject, text: textOf('template') }
      // Of the template of a variant, the subject is not used.
      const ofVariant = { name, subject: 'Not used', text: textOf(1) }
      for (const body of features.hasVariants ? [own, ofVariant] : [own]) {
        const id = await create('/v1/templates', body)
        await ask({ method: 'POST', path: `/v1/templates/${id}/publish`, body: {} })
        parts.templateIds.push(id)
      }
    }
    return parts
  }

  async function statusOf({ id }: CampaignTrial): Promise<string> {
    const { rows } = await sql<{ status: string }>`SELECT status FROM campaigns WHERE id = ${id}`.execute(db)
    return rows[0]?.status ?? 'gone'
  }

  return {
    mail,
    refused,
    call,
    ask,
    async begin({ people: count, features = noFeatures, inMs, isLocal = false, fields = {} }) {
      const name = `trial ${audiences}`
      const audienceId = await create('/v1/audiences', { name })
      const people = await addPeople(audienceId, count, features)
      const parts = await addParts(audienceId, people, features)
      const [templateId, ofVariant = null] = parts.templateIds
      const id = await create('/v1/campaigns', {
        name,
        audienceId,
        from: sender,
        segmentIds: parts.segmentIds,
        topicId: parts.topicId,
        // The subject is the mark of an email: see mail-verdict.ts.
        ...(templateId === undefined ? { subject: ownSubject, content: { text: textOf('campaign') } } : { templateId }),
        ...(features.isThrottled && { throttle: throttlePerHour }),
        ...(features.hasVariants && { trackOpens: true, abTest: abTestOf(ofVariant) }),
        ...fields,
      })
      if (features.isThrottled) passed.set(id, 0)
      const property = { key: 'timezone', type: 'string' }
      if (isLocal) await ask({ method: 'POST', path: '/v1/contact-properties', body: property, statuses: [201, 409] })
      const at = new Date(Date.now() + (inMs ?? 0)).toISOString()
      const scheduled = inMs === undefined ? {} : { scheduledAt: at }
      const when = isLocal ? { localTime: at.slice(0, 'YYYY-MM-DDThh:mm:ss'.length) } : scheduled
      await ask({ method: 'POST', path: `/v1/campaigns/${id}/send`, body: when, statuses: [202] })
      return { ...parts, id, audienceId, people, features, wasPaused: false, mayBeCanceled: false }
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
    passTime,
    passRetries: () => passRetries().catch(() => undefined),
    passedOf: ({ id }) => passed.get(id) ?? 0,
    [Symbol.asyncDispose]: () => mail[Symbol.asyncDispose](),
  }

  async function passTime(): Promise<void> {
    await sql`
      UPDATE campaigns SET ab_tested_at = ab_tested_at - make_interval(hours => ${abTestHours}), due_at = now()
      WHERE waiting_for = 'ab_test' AND status = 'sending' AND ab_winner IS NULL
        AND ab_tested_at > now() - make_interval(hours => ${abTestHours})
    `
      .execute(db)
      .catch(() => undefined)
    if (passed.size === 0) return
    const full = sql<{ id: string }>`
      UPDATE campaigns SET throttled_to = throttled_to - ${throttleSlackMs}, due_at = now()
      WHERE throttle IS NOT NULL AND status = 'sending' AND throttled_to > extract(epoch FROM now()) * 1000
      RETURNING id
    `.execute(db)
    const ids = await full.then(
      ({ rows }) => rows.map(({ id }) => id),
      // It may have been committed before the database went away.
      () => [...passed.keys()],
    )
    for (const id of ids) passed.set(id, (passed.get(id) ?? 0) + throttleSlackMs)
  }

  async function passRetries(): Promise<void> {
    const at = new Date(Date.now() - retrySlackMs)
    const { rows } = await sql<{ id: string }>`
      UPDATE email_recipients SET next_attempt_at = least(next_attempt_at, ${at})
      WHERE (email_id, position) IN (
        SELECT r.email_id, r.position
        FROM campaigns c JOIN emails e ON e.account_id = c.account_id AND e.campaign_id = c.id
        JOIN email_recipients r ON r.email_id = e.id
        WHERE c.status IN ('completed', 'canceled') AND e.status IN ('queued', 'sending') AND r.status = 'deferred'
        FOR UPDATE OF r SKIP LOCKED
      )
      RETURNING email_id AS id
    `.execute(db)
    if (rows.length === 0) return
    await sql`
      UPDATE pgboss.job SET start_after = ${at}, priority = ${priorityOfRetry(at, 'bulk')}
      WHERE name = 'emails' AND id = ANY(${rows.map(({ id }) => uuidOf(id))}::uuid[]) AND state < 'active'
        AND start_after > now()
    `.execute(db)
  }

  async function lapseLeases(): Promise<void> {
    await sql`
      UPDATE campaigns SET due_at = now()
      WHERE due_at > now() AND (status <> 'scheduled' OR scheduled_at <= now())
    `.execute(db)
  }
}
