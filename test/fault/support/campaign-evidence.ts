import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import type { CampaignStatistics } from '../../../contract/campaign-statistics.ts'
import { miscounted } from '../../support/statistics.ts'
import { beginningOf, throttlePerHour } from './campaign-features.ts'
import { noteLateCancels } from './campaign-meddler.ts'
import { type CampaignStage, type CampaignTrial, throttleSlackMs } from './campaign-stage.ts'
import { type CampaignEnd, judgeCampaigns } from './campaign-verdict.ts'
import { mailEvidence } from './mail-evidence.ts'

/** Below the time limit of a short round, so that the test fails with the stuck campaign, not by that limit. */
const patienceMs = 90_000
/** For what the emails and their events need, however long the campaigns took. */
const leastPatienceMs = 5_000
const pollMs = 50

/**
 * Waits until all campaigns have ended and nothing is left to send and to tell of, `patienceMs` at most, and then answers
 * what is wrong, with the features of the campaigns. See `judgeCampaigns` and `miscounted`.
 *
 * @param options.areLossesKnown Whether every process was killed by `stage.mail.kill`. Default: yes.
 */
export async function campaignVerdict(
  stage: CampaignStage,
  trials: readonly CampaignTrial[],
  options: { areLossesKnown?: boolean } = {},
): Promise<string[]> {
  const { db } = stage.mail
  const deadline = performance.now() + patienceMs
  await waitWhile(() => isUnderWay(db), { pass: stage.passTime, deadline })
  const wrongTried = await Promise.all(trials.map((trial) => wrongDeferred(stage, trial)))
  await waitWhile(() => isTrying(db), { pass: stage.passRetries, deadline })
  await noteLateCancels(stage, trials)
  const paused = new Set(trials.flatMap((trial) => (trial.wasPaused ? trial.people.map(({ address }) => address) : [])))
  const mail = await mailEvidence(
    {
      ...stage.mail.trial(options),
      refused: (address) => stage.refused.get(address) ?? 0,
      wasPaused: (address) => paused.has(address),
    },
    Math.max(leastPatienceMs, deadline - performance.now()),
  )
  const events = await eventsOf(stage)
  const campaigns: CampaignEnd[] = []
  for (const trial of trials) campaigns.push(await endOf(stage, trial, events.get(trial.id) ?? []))
  const verdict = judgeCampaigns({ mail, campaigns })
  const wrong = [...wrongTried.flat(), ...verdict, ...(await miscounted(db))]
  for (const trial of trials) {
    wrong.push(...(await wrongMessages(stage, trial)), ...(await wrongThrottle(stage, trial)))
  }
  // What helps to find the cause.
  return wrong.length === 0 ? [] : [...wrong, ...trials.map(({ id, features }) => `${id}: ${JSON.stringify(features)}`)]
}

type MessageRow = {
  person: string
  group: number | null
  tested: number | null
  winner: number | null
  text: string | null
  is_sent: boolean
}

/** Tells of people who did not get their message, their variant or the winner, and of variants that are miscounted. */
async function wrongMessages(stage: CampaignStage, { id, features }: CampaignTrial): Promise<string[]> {
  const wrong: string[] = []
  const { rows } = await sql<MessageRow>`
    SELECT r.subscriber_id AS person, r.variant AS "group", e.variant AS tested, c.ab_winner AS winner, t.text,
      s.accepted_at IS NOT NULL AS is_sent
    FROM campaigns c JOIN campaign_recipients r ON r.account_id = c.account_id AND r.campaign_id = c.id
    LEFT JOIN emails e ON e.id = r.email_id
    LEFT JOIN email_contents t ON t.email_id = e.id
    LEFT JOIN email_recipients s ON s.email_id = e.id AND s.position = 0
    WHERE c.id = ${id}
  `.execute(stage.mail.db)
  for (const { person, group, tested, winner, text } of rows) {
    if (text === null) continue
    if (tested !== group) wrong.push(`${person} is in the group ${group}, and was counted in ${tested}`)
    const expected = beginningOf(group ?? winner ?? (features.hasTemplate ? 'template' : 'campaign'))
    if (!text.startsWith(expected)) wrong.push(`${person} should get "${expected}", and got "${text.slice(0, 20)}"`)
  }
  const { variants } = (await stage.ask({ path: `/v1/campaigns/${id}/statistics` })) as CampaignStatistics
  for (const [number, { people, sent }] of variants.entries()) {
    const there = rows.filter(({ group }) => group === number)
    const got = there.filter((row) => row.is_sent).length
    if (people !== there.length || sent !== got) {
      wrong.push(`${id}, variant ${number}: ${people} people and ${sent} sent, not ${there.length} and ${got}`)
    }
  }
  return wrong
}

type ThrottleRow = { made: number; taken_to: number; listed: number; ended: number }

/** Tells of emails without a slot of the throttle, and of slots in the future: see server/campaigns/throttle.ts. */
async function wrongThrottle(stage: CampaignStage, trial: CampaignTrial): Promise<string[]> {
  if (!trial.features.isThrottled) return []
  const { rows } = await sql<ThrottleRow>`
    SELECT (SELECT count(*)::int FROM emails WHERE account_id = c.account_id AND campaign_id = c.id) AS made,
      throttled_to AS taken_to, extract(epoch FROM listed_at)::float8 * 1000 AS listed,
      extract(epoch FROM coalesce(ended_at, now()))::float8 * 1000 AS ended
    FROM campaigns c WHERE id = ${trial.id}
  `.execute(stage.mail.db)
  const slotMs = (3_600_000 + throttleSlackMs) / throttlePerHour
  return rows.flatMap(({ made, taken_to: takenTo, listed, ended }) => {
    if (made === 0) return []
    const slots = Math.ceil((takenTo + stage.passedOf(trial) - (listed - throttleSlackMs)) / slotMs)
    return [
      ...(made > slots ? [`${trial.id} made ${made} emails, and its throttle had ${slots} slots for them`] : []),
      ...(takenTo > ended + slotMs ? [`${trial.id} took slots until ${takenTo}, and ended at ${ended}`] : []),
    ]
  })
}

/** Tells of a campaign whose statistics do not say how many people are still tried. It has ended. */
async function wrongDeferred(stage: CampaignStage, { id }: CampaignTrial): Promise<string[]> {
  for (;;) {
    const before = await triedOf(stage, id)
    const { deferred } = (await stage.ask({ path: `/v1/campaigns/${id}/statistics` })) as CampaignStatistics
    // Otherwise one of them ended meanwhile.
    if ((await triedOf(stage, id)) === before) {
      return deferred === before ? [] : [`${id} counts ${deferred} as deferred, and there are ${before}`]
    }
  }
}

async function triedOf({ mail }: CampaignStage, id: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    SELECT count(*)::int AS count FROM emails e JOIN email_recipients r ON r.email_id = e.id
    WHERE e.campaign_id = ${id} AND r.status IN ('queued', 'sending', 'deferred')
  `.execute(mail.db)
  return rows[0]?.count ?? 0
}

/** No retry comes before this. Milliseconds. */
const firstRetryMs = 4 * 60_000

/**
 * Returns how many people were still tried as a campaign was completed, by the history of their emails: at least those
 * that a server had refused. Who was sent to again may have got it before or after that.
 */
async function deferredOf({ mail }: CampaignStage, id: string): Promise<CampaignEnd['deferred']> {
  const { rows } = await sql<{ least: number; most: number }>`
    SELECT count(*)::int AS most,
      count(*) FILTER (WHERE refused_at > c.ended_at - make_interval(secs => ${firstRetryMs / 1000}))::int AS least
    FROM campaigns c JOIN emails e ON e.account_id = c.account_id AND e.campaign_id = c.id
    JOIN LATERAL (
      SELECT min(at) FILTER (WHERE type = 'deferred') AS refused_at FROM email_timeline
      WHERE email_id = e.id AND type IN ('deferred', 'unknown', 'resent') HAVING count(*) > 0
    ) AS t ON true
    WHERE c.id = ${id}
  `.execute(mail.db)
  return rows[0] ?? { least: 0, most: 0 }
}

/** Calls `pass` until `isLeft` is false, or until `deadline` on the clock of `performance.now`. */
async function waitWhile(
  isLeft: () => Promise<boolean>,
  { pass, deadline }: { pass: () => Promise<void>; deadline: number },
): Promise<void> {
  while ((await isLeft()) && performance.now() < deadline) {
    await pass()
    await delay(pollMs)
  }
}

type Db = CampaignStage['mail']['db']

/** Whether a campaign or a first attempt is left. */
async function isUnderWay(db: Db): Promise<boolean> {
  const { rows } = await sql<{ left: boolean }>`
    SELECT EXISTS (SELECT FROM campaigns WHERE due_at IS NOT NULL)
      OR EXISTS (SELECT FROM email_recipients WHERE status IN ('queued', 'sending')) AS left
  `.execute(db)
  return rows[0]?.left === true
}

async function isTrying(db: Db): Promise<boolean> {
  const { rows } = await sql<{ left: boolean }>`
    SELECT EXISTS (SELECT FROM emails WHERE status IN ('queued', 'sending')) AS left
  `.execute(db)
  return rows[0]?.left === true
}

const campaignShown = z.object({ status: z.string(), recipients: z.number() })
const recipientPage = z.object({
  data: z.array(z.object({ subscriberId: z.string(), status: z.string(), reason: z.string().nullable() })),
  nextCursor: z.string().nullable(),
})
const eventPage = z.object({
  data: z.array(
    z.object({
      type: z.string(),
      data: z.object({ campaignId: z.string(), recipients: z.record(z.string(), z.number()) }),
    }),
  ),
  nextCursor: z.string().nullable(),
})

async function endOf(stage: CampaignStage, trial: CampaignTrial, events: CampaignEnd['events']): Promise<CampaignEnd> {
  const path = `/v1/campaigns/${trial.id}`
  const { status, recipients: shown } = campaignShown.parse(await stage.ask({ path }))
  const statistics = (await stage.ask({ path: `${path}/statistics` })) as CampaignStatistics
  const recipients = await allOf(stage, `${path}/recipients?limit=100`, recipientPage)
  const deferred = await deferredOf(stage, trial.id)
  return { id: trial.id, status, people: trial.people, shown, statistics, recipients, events, deferred }
}

/** Returns the events of campaigns, oldest first, by campaign. */
async function eventsOf(stage: CampaignStage): Promise<Map<string, { type: string; recipients: unknown }[]>> {
  const found = new Map<string, { type: string; recipients: unknown }[]>()
  for (const type of ['campaign.sent', 'campaign.completed']) {
    for (const { data } of await allOf(stage, `/v1/events?type=${type}&order=asc&limit=100`, eventPage)) {
      const { campaignId, recipients } = data
      found.set(campaignId, [...(found.get(campaignId) ?? []), { type, recipients }])
    }
  }
  return found
}

type PageOf<T> = z.ZodType<{ data: T[]; nextCursor: string | null }>

async function allOf<T>(stage: CampaignStage, path: string, page: PageOf<T>): Promise<T[]> {
  const all: T[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const more = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const { data, nextCursor } = page.parse(await stage.ask({ path: `${path}${more}` }))
    all.push(...data)
    cursor = nextCursor
  }
  return all
}
