import { sql } from 'kysely'
import { z } from 'zod'
import type { SegmentCondition } from '../../../contract/segment-conditions.ts'
import { usualMatchLimits } from '../../../server/audiences/matching-contacts.ts'
import { newId } from '../../../server/shared/ids.ts'
import type { Benchmark, BenchmarkContext, Outcome } from '../benchmark.ts'
import { declareProperties } from '../csv-file.ts'
import { type Load, type Service, startCluster, startLoad, startService, type World } from '../lab.ts'
import { formatNumber } from '../report.ts'
import { addAudience, addTenants, settleDown, type Tenant } from '../seed.ts'
import { median, quantile } from '../statistics.ts'

/** Contacts of the large audience at size 1, and of the small one. */
const largeCount = 1_000_000
const smallCount = 10_000
/** Of so many people one got the email of each campaign. */
const emailsShare = 2
const chunkSize = 100_000
/** Counts of one segment in a round, one after the other. */
const countsPerRound = 5

export const segments: Benchmark = {
  name: 'segments',
  measures: 'GET /v1/segments/:id/count of an audience of 1,000,000 contacts',
  baseline: 'the same with 10,000',
  rounds: 3,
  seconds: 10,
  run,
}

type Kind = 'status and properties' | 'engagement'
type Tried = { name: string; kind: Kind; conditions: SegmentCondition }

/** The segments that are counted. `campaignId`: half of the people got it. */
function triedSegments(campaignId: string): Tried[] {
  const pro: SegmentCondition = { type: 'property', property: 'plan', operator: 'is', value: 'pro' }
  const goodScore: SegmentCondition = { type: 'property', property: 'score', operator: 'at_least', value: 90 }
  const active: SegmentCondition = { type: 'field', field: 'status', operator: 'is', value: 'active' }
  const since: SegmentCondition = { type: 'property', property: 'since', operator: 'after', value: '2026-02-14' }
  const domain: SegmentCondition = { type: 'field', field: 'emailDomain', operator: 'is', value: 'mail-7.example' }
  const opened: SegmentCondition = { type: 'engagement', event: 'opened', inLastDays: 30 }
  const clicked: SegmentCondition = { type: 'engagement', event: 'clicked', campaignId }
  return [
    { name: 'status', kind: 'status and properties', conditions: active },
    { name: 'property is', kind: 'status and properties', conditions: pro },
    { name: 'property at least', kind: 'status and properties', conditions: goodScore },
    { name: 'date after', kind: 'status and properties', conditions: since },
    {
      name: 'status and two properties',
      kind: 'status and properties',
      conditions: { type: 'and', conditions: [active, pro, goodScore] },
    },
    {
      name: 'not a property, or the domain of the address',
      kind: 'status and properties',
      conditions: { type: 'or', conditions: [{ type: 'not', condition: pro }, domain] },
    },
    { name: 'opened in 30 days', kind: 'engagement', conditions: opened },
    { name: 'clicked of a campaign', kind: 'engagement', conditions: clicked },
    {
      name: 'never opened, and a property',
      kind: 'engagement',
      conditions: {
        type: 'and',
        conditions: [pro, { type: 'not', condition: { type: 'engagement', event: 'opened' } }],
      },
    },
  ]
}

type Side = { world: World; service: Service; tenant: Tenant; tried: (Tried & { id: string })[] }
type Compared = { tried: Tried; large: number[]; small: number[]; isEstimate: boolean }

async function run(context: BenchmarkContext): Promise<Outcome> {
  const { processes, rounds, seconds, size, progress } = context
  const cluster = await startCluster(processes, { settings: { max_wal_size: '4GB' } })
  const load = await startLoad(processes)
  const count = Math.round(largeCount * size)
  const start = async (name: string, people: number): Promise<Side> => {
    const world = await cluster.create(`segments_${name}`)
    const { tenant, audienceId, campaignId } = await writePeople(world, people)
    progress(`${people.toLocaleString('en')} contacts prepared`)
    const service = await startService(processes, world, { name: `service, ${name}`, roles: 'api' })
    const tried: Side['tried'] = []
    for (const one of triedSegments(campaignId)) {
      tried.push({
        ...one,
        id: await addSegment(service, tenant, { audienceId, name: one.name, conditions: one.conditions }),
      })
    }
    return { world, service, tenant, tried }
  }
  const large = await start('large', count)
  const small = await start('small', smallCount)

  const compared: Compared[] = []
  for (const [index, tried] of large.tried.entries()) {
    const figures: Compared = { tried, large: [], small: [], isEstimate: false }
    for (let round = 0; round <= rounds; round++) {
      const [ofLarge, ofSmall] = [
        await measure(load, large, index, seconds),
        await measure(load, small, index, seconds),
      ]
      // The first round fills caches.
      if (round === 0) continue
      figures.large.push(...ofLarge)
      figures.small.push(...ofSmall)
    }
    figures.isEstimate = (await countOf(large, tried.id)).isEstimate
    compared.push(figures)
    progress(lineOf(figures))
  }
  await Promise.all([large.service.stop(), small.service.stop()])
  for (const { world } of [large, small]) await world.close()

  const slowestOf = (kind: Kind) =>
    compared.filter(({ tried }) => tried.kind === kind).toSorted((a, b) => median(b.large) - median(a.large))[0]
  const targets = (
    [
      ['status and properties', 500],
      ['engagement', 2_000],
    ] as const
  ).flatMap(([kind, atMost]) => {
    const slowest = slowestOf(kind)
    if (slowest === undefined) return []
    return [
      {
        figure: `slowest of ${kind}, ${slowest.tried.name}`,
        unit: 'ms',
        value: median(slowest.large),
        goal: { atMost },
      },
    ]
  })
  return {
    measurements: (['large', 'small'] as const).map((side) => ({
      side,
      figure: 'p50 of each segment',
      unit: 'ms',
      values: compared.map((one) => median(one[side])),
    })),
    targets,
    costs: [],
    notes: [
      `${formatNumber(count)} contacts with three properties, of whom half got a campaign; a third of those opened it, a tenth clicked.`,
      `The response says whether a count is an estimate. Audiences of more than ${formatNumber(usualMatchLimits.exactUpTo)} contacts are estimated from a sample, unless the conditions are about the status alone.`,
      'Each segment: p50 and p95 of the large audience in ms | p50 of the small one.',
      ...compared.map(lineOf),
    ],
  }
}

function lineOf({ tried, large, small, isEstimate }: Compared): string {
  const estimated = isEstimate ? ', estimated' : ''
  return `${tried.name}: ${formatNumber(median(large))} and ${formatNumber(quantile(large, 0.95))}${estimated} | ${formatNumber(median(small))}`
}

const counted = z.object({ count: z.number(), isEstimate: z.boolean() })

async function countOf({ service, tenant }: Side, id: string) {
  const response = await fetch(`${service.url}/v1/segments/${id}/count`, {
    headers: { authorization: `Bearer ${tenant.key}` },
  })
  return counted.parse(await response.json())
}

/** Counts a segment several times. Returns the milliseconds of each. */
async function measure(
  load: Load,
  { service, tenant, tried }: Side,
  index: number,
  seconds: number,
): Promise<number[]> {
  const headers = { authorization: `Bearer ${tenant.key}` }
  const requests = [{ method: 'GET' as const, path: `/v1/segments/${tried[index]?.id}/count`, headers }]
  const { latencies } = await load.run(
    { origins: [service.url], requests, seconds, count: countsPerRound, connections: 1 },
    200,
  )
  return latencies
}

const created = z.object({ id: z.string() })

async function addSegment(service: Service, { key }: Tenant, segment: unknown): Promise<string> {
  const response = await fetch(`${service.url}/v1/segments`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(segment),
  })
  if (response.status !== 201) throw new Error(`the segment was answered ${response.status}: ${await response.text()}`)
  return created.parse(await response.json()).id
}

/** Adds an account with an audience of so many people, and a campaign that half of them got. */
async function writePeople(world: World, count: number) {
  const { db } = world
  const [tenant] = await addTenants(world, [{ urls: [] }])
  if (tenant === undefined) throw new Error('there is no account')
  const { accountId } = tenant
  const audienceId = await addAudience(world, tenant)
  await declareProperties(world, tenant)
  const campaignId = newId('campaign', new Date())
  await db.connection().execute(async (connection) => {
    // Without triggers and foreign keys.
    await sql`SET session_replication_role = replica`.execute(connection)
    for (let from = 0; from < count; from += chunkSize) {
      const at = new Date()
      const length = Math.min(chunkSize, count - from)
      const ids = Array.from({ length }, () => newId('subscriber', at))
      const emailIds = Array.from({ length }, () => newId('email', at))
      await sql`
        WITH given AS MATERIALIZED (
          SELECT id, email_id, ${from} + number - 1 AS n,
            'reader-' || ${from} + number - 1 || '@mail-' || (${from} + number - 1) % 50 || '.example' AS address
          FROM unnest(${ids}::text[], ${emailIds}::text[]) WITH ORDINALITY AS i (id, email_id, number)
        ), person AS (
          INSERT INTO subscribers (id, account_id, email, email_key, first_name, last_name, properties, created_at, updated_at)
          SELECT id, ${accountId}, address, address, 'Ada', 'Lovelace',
            jsonb_build_object('plan', (ARRAY['free', 'pro', 'team'])[1 + n % 3], 'score', n % 100,
              'since', '2026-02-' || lpad((1 + n % 28)::text, 2, '0')), ${at}, ${at}
          FROM given
        ), contact AS (
          INSERT INTO contacts (audience_id, subscriber_id, account_id, status, created_at, updated_at)
          SELECT ${audienceId}, id, ${accountId}, CASE WHEN n % 20 = 0 THEN 'unsubscribed' ELSE 'active' END, ${at}, ${at}
          FROM given
        ), email AS (
          INSERT INTO emails (id, account_id, mode, status, sender, subject, message_id, campaign_id, created_at, updated_at, completed_at)
          SELECT email_id, ${accountId}, 'live', 'delivered', 'Shop <hello@shop.example>', 'News',
            '<' || n || '@shop.example>', ${campaignId}, ${at}, ${at}, ${at}
          FROM given WHERE n % ${sql.lit(emailsShare)} = 0
        )
        INSERT INTO email_recipients (email_id, position, account_id, kind, address, address_key, domain, status,
          attempt_count, accepted_at, delivered_at, opened_at, clicked_at)
        SELECT email_id, 0, ${accountId}, 'to', address, address, split_part(address, '@', 2), 'delivered', 1, ${at}, ${at},
          CASE WHEN n % 6 = 0 THEN ${at}::timestamptz END, CASE WHEN n % 20 = 0 THEN ${at}::timestamptz END
        FROM given WHERE n % ${sql.lit(emailsShare)} = 0
      `.execute(connection)
    }
    await sql`RESET session_replication_role`.execute(connection)
  })
  await settleDown(world)
  return { tenant, audienceId, campaignId }
}
