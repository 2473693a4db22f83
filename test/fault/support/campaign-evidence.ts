import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import { z } from 'zod'
import type { CampaignStatistics } from '../../../contract/campaign-statistics.ts'
import { miscounted } from '../../support/statistics.ts'
import type { CampaignStage, CampaignTrial } from './campaign-stage.ts'
import { type CampaignEnd, judgeCampaigns } from './campaign-verdict.ts'
import { mailEvidence } from './mail-evidence.ts'

const patienceMs = 60_000
const pollMs = 50

/**
 * Waits until all campaigns have ended and nothing is left to send and to tell of, `patienceMs` at most, and then answers
 * what is wrong. See `judgeCampaigns` and `miscounted`.
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
  while ((await isUnderWay(db)) && performance.now() < deadline) {
    await stage.passHours()
    await delay(pollMs)
  }
  const mail = await mailEvidence(stage.mail.trial(options), patienceMs)
  const events = await eventsOf(stage)
  const campaigns: CampaignEnd[] = []
  for (const trial of trials) campaigns.push(await endOf(stage, trial, events.get(trial.id) ?? []))
  return [...judgeCampaigns({ mail, campaigns }), ...(await miscounted(db)), ...(await wrongVariants(stage, trials))]
}

type VariantRow = {
  address: string
  group: number | null
  tested: number | null
  winner: number | null
  text: string | null
  is_sent: boolean
}

/** Tells of people who did not get their variant, or of the rest the winner, and of variants that are miscounted. */
async function wrongVariants(stage: CampaignStage, trials: readonly CampaignTrial[]): Promise<string[]> {
  const wrong: string[] = []
  for (const { id } of trials) {
    const { rows } = await sql<VariantRow>`
      SELECT r.subscriber_id AS address, r.variant AS "group", e.variant AS tested, c.ab_winner AS winner, t.text,
        s.accepted_at IS NOT NULL AS is_sent
      FROM campaigns c JOIN campaign_recipients r ON r.account_id = c.account_id AND r.campaign_id = c.id
      LEFT JOIN emails e ON e.id = r.email_id
      LEFT JOIN email_contents t ON t.email_id = e.id
      LEFT JOIN email_recipients s ON s.email_id = e.id AND s.position = 0
      WHERE c.id = ${id} AND c.ab_test IS NOT NULL
    `.execute(stage.mail.db)
    for (const { address, group, tested, winner, text } of rows) {
      if (text === null) continue
      if (tested !== group) wrong.push(`${address} is in the group ${group}, and was counted in ${tested}`)
      const expected = `Variant ${group ?? winner} `
      if (!text.startsWith(expected)) wrong.push(`${address} should get "${expected}", and got "${text.slice(0, 20)}"`)
    }
    if (rows.length === 0) continue
    const { variants } = (await stage.ask({ path: `/v1/campaigns/${id}/statistics` })) as CampaignStatistics
    for (const [number, { people, sent }] of variants.entries()) {
      const there = rows.filter(({ group }) => group === number)
      const got = there.filter((row) => row.is_sent).length
      if (people !== there.length || sent !== got) {
        wrong.push(`${id}, variant ${number}: ${people} people and ${sent} sent, not ${there.length} and ${got}`)
      }
    }
  }
  return wrong
}

async function isUnderWay(db: CampaignStage['mail']['db']): Promise<boolean> {
  const { rows } = await sql<{ left: boolean }>`
    SELECT EXISTS (SELECT FROM campaigns WHERE due_at IS NOT NULL) AS left
  `.execute(db)
  return rows[0]?.left === true
}

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
  const { status } = z.object({ status: z.string() }).parse(await stage.ask({ path }))
  const statistics = (await stage.ask({ path: `${path}/statistics` })) as CampaignStatistics
  const recipients = await allOf(stage, `${path}/recipients?limit=100`, recipientPage)
  return { id: trial.id, status, people: trial.people, statistics, recipients, events }
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
