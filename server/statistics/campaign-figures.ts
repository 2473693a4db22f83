import { sql } from 'kysely'
import { campaignLimits } from '../../contract/campaign-resource.ts'
import type { Handle } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { Scope } from '../shared/scope.ts'
import { emailFigures } from './figures.ts'
import { type Figures, selectSeries, type TimeRange } from './queries.ts'

/** Figures of the emails of a campaign. */
export type CampaignFigures = Figures

type PartFigures = Pick<Figures, (typeof emailFigures)[number]>

export type CampaignReport = {
  /** Of each day and of each hour in which something was counted, in order. */
  days: (CampaignFigures & { start: Date })[]
  hours: (CampaignFigures & { start: Date })[]
  /** In the order of the content. */
  links: { link: string; figures: PartFigures | null }[]
  /** Of the links that are not in the list. Null: none was clicked. */
  otherLinks: PartFigures | null
  /** By the number of the variant that was tested. `opened` and `clicked` are people alone. */
  variants: ReadonlyMap<number, PartFigures>
  /** The largest providers and domains, by what was sent. */
  providers: (PartFigures & { name: string; isDomain: boolean })[]
}

/** Returns what was counted of a campaign: over time, by link and by provider. */
export async function reportOfCampaign(
  handle: Handle,
  scope: Scope,
  { id, ...range }: TimeRange & { id: string },
): Promise<CampaignReport> {
  const about = { scope, kind: 'campaign', key: id, ...range } as const
  const days = await selectSeries(handle, { ...about, step: 'day' })
  const hours = await selectSeries(handle, { ...about, step: 'hour' })
  const clicks = await selectParts(handle, { scope, id, kinds: ['campaign_link'] })
  const byNumber = new Map(clicks.map(({ part, kind: _, ...figures }) => [part, figures]))
  const links = await selectLinks(handle, scope, id)
  const variants = await figuresOfVariants(handle, scope, id)
  const kinds = ['campaign_mailbox', 'campaign_domain'] as const
  const providers = await selectParts(handle, { scope, id, kinds, limit: campaignLimits.providers })
  return {
    days,
    hours,
    links: links.map(({ number, link }) => ({ link, figures: byNumber.get(String(number)) ?? null })),
    otherLinks: byNumber.get('0') ?? null,
    variants,
    providers: providers.map(({ kind, part, ...figures }) => ({
      ...figures,
      name: part,
      isDomain: kind === 'campaign_domain',
    })),
  }
}

/** Returns what was counted of each variant that a campaign tests, by its number. One without has no entry. */
export async function figuresOfVariants(
  handle: Handle,
  scope: Scope,
  id: string,
): Promise<ReadonlyMap<number, PartFigures>> {
  const parts = await selectParts(handle, { scope, id, kinds: ['campaign_variant'] })
  return new Map(parts.map(({ part, kind: _, ...figures }) => [Number(part), figures]))
}

type PartKind = 'campaign_link' | 'campaign_variant' | 'campaign_mailbox' | 'campaign_domain'

const names = sql.raw(emailFigures.join(', '))
const sums = sql.raw(emailFigures.map((figure) => `coalesce(sum(${figure}), 0)::float8 AS ${figure}`).join(', '))

/**
 * Returns the figures of parts of a campaign, those with most sent emails first. Reads, by the primary key, a row for
 * each part and day: at most 101 links, and of domains `maxKeysPerDay`.
 */
async function selectParts(
  handle: Handle,
  query: { scope: Scope; id: string; kinds: readonly PartKind[]; limit?: number },
): Promise<(PartFigures & { kind: PartKind; part: string })[]> {
  const { scope, id, kinds, limit = null } = query
  // The keys of parts are the id, a slash, and the part: 0 comes behind the slash.
  const isPart = sql`account_id = ${scope.accountId} AND mode = ${scope.mode} AND kind = ANY(${[...kinds]}::text[])
    AND key >= ${`${id}/`} AND key < ${`${id}0`}`
  return executePrepared(
    handle,
    { name: 'statistics_campaign_parts' },
    sql<PartFigures & { kind: PartKind; part: string }>`
      SELECT kind, substr(key, ${id.length + 2}::int) AS part, ${sums} FROM (
        SELECT kind, key, ${names} FROM statistics_days WHERE ${isPart}
        UNION ALL
        SELECT kind, key, ${names} FROM statistics_deltas WHERE ${isPart}
      ) counted
      GROUP BY kind, key
      -- On a day when an account has no room for more domains, those of an email are not counted apart.
      HAVING kind <> 'campaign_domain' OR coalesce(sum(sent), 0) > 0
      ORDER BY coalesce(sum(sent), 0) DESC, kind DESC, key LIMIT ${limit}::bigint
    `,
  )
}

async function selectLinks(
  handle: Handle,
  { accountId }: Scope,
  id: string,
): Promise<{ number: number; link: string }[]> {
  return handle
    .selectFrom('campaign_links')
    .select(['number', 'link'])
    .where('account_id', '=', accountId)
    .where('campaign_id', '=', id)
    .orderBy('number')
    .execute()
}
