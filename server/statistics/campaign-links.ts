import { sql } from 'kysely'
import { campaignLimits } from '../../contract/campaign-resource.ts'
import type { Trx } from '../database/connection.ts'

/*
 * The links of a campaign are stored as they were written, with their Liquid, when it starts. A click has the link as it
 * was rendered for the person; it is counted for the link that it was made of. So a link with the name of each person in
 * it is one link, and the list of a campaign never changes: counting needs no lock.
 */

/** The number of all links that are not in the list of the campaign. */
const otherLinks = 0

/** A click on a link, as it was rendered. */
export type LinkClick = { accountId: string; campaignId: string; link: string }

/**
 * Stores the links of a campaign that starts: few, since all with Liquid are read for a click. Does nothing for one that
 * has some.
 */
export async function storeCampaignLinks(
  trx: Trx,
  { accountId, id }: { accountId: string; id: string },
  links: readonly string[],
): Promise<void> {
  let characters = 0
  const kept = [...new Set(links)].slice(0, campaignLimits.links).filter((link) => {
    characters += link.length
    return characters <= campaignLimits.linkCharacters
  })
  if (kept.length === 0) return
  await sql`
    INSERT INTO campaign_links (account_id, campaign_id, number, link)
    SELECT ${accountId}, ${id}, number, link FROM unnest(${kept}::text[]) WITH ORDINALITY AS l (link, number)
    ON CONFLICT DO NOTHING
  `.execute(trx)
}

/**
 * Returns a function that gives a click the number of its link. Reads, of the campaigns of `clicks`, the links that were
 * clicked and those with Liquid.
 */
export async function numberLinks(trx: Trx, clicks: readonly LinkClick[]): Promise<(click: LinkClick) => number> {
  if (clicks.length === 0) return () => otherLinks
  const campaigns = new Map(clicks.map(({ accountId, campaignId }) => [campaignId, accountId]))
  const { rows } = await sql<{ campaign_id: string; number: number; link: string }>`
    SELECT l.campaign_id, l.number, l.link
    FROM unnest(${[...campaigns.values()]}::text[], ${[...campaigns.keys()]}::text[]) AS c (account_id, id)
    JOIN campaign_links l ON l.account_id = c.account_id AND l.campaign_id = c.id
    WHERE l.link = ANY(${[...new Set(clicks.map(({ link }) => link))]}::text[])
      OR strpos(l.link, '{{') > 0 OR strpos(l.link, '{%') > 0
    ORDER BY l.campaign_id, l.number
  `.execute(trx)
  const byCampaign = Map.groupBy(rows, (row) => row.campaign_id)
  const matchers = new Map([...byCampaign].map(([id, links]) => [id, linkMatcher(links)]))
  return ({ campaignId, link }) => matchers.get(campaignId)?.(link) ?? otherLinks
}

/** Returns a function that finds the number of the link that a rendered one was made of; null: there is none. */
export function linkMatcher(links: readonly { number: number; link: string }[]): (rendered: string) => number | null {
  const exact = new Map(links.map(({ number, link }) => [link, number]))
  // The one with most text of its own first: `{{ link }}` alone fits everything.
  const patterns = links
    .map(({ number, link }) => ({ number, texts: textsBetweenLiquid(link) }))
    .filter(({ texts }) => texts.length > 1)
    .toSorted((one, other) => lengthOf(other.texts) - lengthOf(one.texts))
  return (rendered) =>
    exact.get(rendered) ?? patterns.find(({ texts }) => hasTextsInOrder(rendered, texts))?.number ?? null
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 0)
}

/** Returns whether a text begins with the first of `texts`, ends with the last, and has the others in order between. */
function hasTextsInOrder(text: string, texts: readonly string[]): boolean {
  const first = texts[0] ?? ''
  const last = texts.at(-1) ?? ''
  const end = text.length - last.length
  if (!text.startsWith(first) || !text.endsWith(last) || end < first.length) return false
  let at = first.length
  for (const one of texts.slice(1, -1)) {
    const found = text.indexOf(one, at)
    if (found === -1 || found + one.length > end) return false
    at = found + one.length
  }
  return true
}

/** Returns the texts that are in every link that is made of this one: one more than there are gaps between them. */
function textsBetweenLiquid(source: string): string[] {
  const texts: string[] = []
  let at = 0
  let takesNext = false
  const add = (text: string) => texts.push(takesNext ? text.trimStart() : text)
  for (const { start, end } of gapsIn(source)) {
    // `{%-` and `{{-` take the white space before them away, `-%}` and `-}}` that behind them.
    const text = source.slice(at, start)
    add(source[start + 2] === '-' ? text.trimEnd() : text)
    takesNext = source[end - 3] === '-'
    at = end
  }
  add(source.slice(at))
  return texts
}

/** Returns where the link differs by person: at each output, and from the first tag to the last, as `if` to `endif`. */
function gapsIn(source: string): { start: number; end: number }[] {
  const liquid = liquidIn(source)
  const tags = liquid.filter(({ start }) => source.startsWith('{%', start))
  const [first, last] = [tags[0], tags.at(-1)]
  if (first === undefined || last === undefined) return liquid
  return [
    ...liquid.filter(({ end }) => end <= first.start),
    { start: first.start, end: last.end },
    ...liquid.filter(({ start }) => start >= last.end),
  ]
}

/** Finds the outputs and tags of Liquid. Reads the text once, whatever stands in it. */
export function liquidIn(source: string): { start: number; end: number }[] {
  const found: { start: number; end: number }[] = []
  const next = { '{{': -1, '{%': -1, '}}': -1, '%}': -1 }
  /** Returns where `mark` is at or after `from`, or infinity. Never looks at a place twice. */
  const find = (mark: keyof typeof next, from: number) => {
    if (next[mark] < from) {
      const at = source.indexOf(mark, from)
      next[mark] = at === -1 ? Number.POSITIVE_INFINITY : at
    }
    return next[mark]
  }
  for (let at = 0; ; ) {
    const [output, tag] = [find('{{', at), find('{%', at)]
    const start = Math.min(output, tag)
    if (start === Number.POSITIVE_INFINITY) return found
    const close = find(output < tag ? '}}' : '%}', start + 2)
    // An output or tag that is not closed is text, up to the next one.
    if (close === Number.POSITIVE_INFINITY) at = start + 2
    else {
      at = close + 2
      found.push({ start, end: at })
    }
  }
}
