import { sql } from 'kysely'
import { plainArray } from '../database/arrays.ts'
import type { Trx } from '../database/connection.ts'
import { executePrepared } from '../database/prepared.ts'
import type { Scope } from '../shared/scope.ts'
import { type EmailFigure, emailFigures, type StatisticKind } from './figures.ts'
import { mailboxProviderOf } from './mailbox-providers.ts'

/** The figures that count for one recipient of an email at one moment. */
export type RecipientCount = {
  scope: Scope
  /** Null: the email has no domain, or it is deleted. */
  domainId: string | null
  tags: readonly string[]
  /** Null: the email is of no campaign. */
  campaignId: string | null
  /** The domain of the recipient, in lower case. */
  recipientDomain: string
  at: Date
  figures: readonly EmailFigure[]
  /** The figures that count for one link of the campaign. */
  link?: { number: number; figures: readonly EmailFigure[] }
  /** The figures that count for the variant of the campaign that the email tests. Default: it tests none. */
  variant?: { number: number; figures: readonly EmailFigure[] } | null
}

const hourMs = 3_600_000

type Delta = {
  scope: Scope
  kind: Exclude<StatisticKind, 'webhook' | 'emails' | 'webhooks'>
  key: string
  hour: number
  counts: Map<EmailFigure, number>
}

/**
 * Counts what happened to recipients, in the transaction that records it: one row for each domain, tag, campaign,
 * part of a campaign and hour. The statement is sent with the next one.
 */
export async function countRecipients(trx: Trx, counted: readonly RecipientCount[]): Promise<void> {
  const deltas = sumUp(counted)
  if (deltas.length === 0) return
  const countsOf = (figure: EmailFigure) => sql`${plainArray(deltas.map(({ counts }) => counts.get(figure) ?? null))}`
  const statement = sql`
    INSERT INTO statistics_deltas (account_id, mode, kind, key, hour, ${sql.raw(emailFigures.join(', '))})
    SELECT * FROM unnest(
      ${plainArray(deltas.map(({ scope }) => scope.accountId))}::text[],
      ${plainArray(deltas.map(({ scope }) => scope.mode))}::text[],
      ${plainArray(deltas.map(({ kind }) => kind))}::text[],
      ${deltas.map(({ key }) => key)}::text[],
      ${plainArray(deltas.map(({ hour }) => new Date(hour).toISOString()))}::timestamptz[],
      ${sql.join(emailFigures.map((figure) => sql`${countsOf(figure)}::int[]`))}
    )
  `
  await executePrepared(trx, { name: 'count_recipients', sendsWithNext: true }, statement)
}

function sumUp(counted: readonly RecipientCount[]): Delta[] {
  const deltas = new Map<string, Delta>()
  for (const { scope, domainId, tags, campaignId, recipientDomain, at, figures, link, variant } of counted) {
    if (figures.length === 0) continue
    const hour = Math.floor(at.getTime() / hourMs) * hourMs
    add({ scope, kind: 'domain', key: domainId ?? '', hour }, figures)
    for (const tag of tags) add({ scope, kind: 'tag', key: tag, hour }, figures)
    if (campaignId === null) continue
    add({ scope, kind: 'campaign', key: campaignId, hour }, figures)
    const provider = mailboxProviderOf(recipientDomain)
    const kind = provider === null ? 'campaign_domain' : 'campaign_mailbox'
    add({ scope, kind, key: `${campaignId}/${provider ?? recipientDomain}`, hour }, figures)
    if (variant) add({ scope, kind: 'campaign_variant', key: `${campaignId}/${variant.number}`, hour }, variant.figures)
    if (link) add({ scope, kind: 'campaign_link', key: `${campaignId}/${link.number}`, hour }, link.figures)
  }
  return [...deltas.values()]

  function add(about: Omit<Delta, 'counts'>, figures: readonly EmailFigure[]): void {
    const { scope, kind, key, hour } = about
    const name = `${scope.accountId} ${scope.mode} ${kind} ${hour} ${key}`
    const delta = deltas.get(name) ?? { ...about, counts: new Map<EmailFigure, number>() }
    deltas.set(name, delta)
    for (const figure of figures) delta.counts.set(figure, (delta.counts.get(figure) ?? 0) + 1)
  }
}
