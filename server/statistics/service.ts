import {
  maxRangeDays,
  type Statistics,
  type StatisticsQuery,
  type StatisticsRanking,
  type StatisticsRankingQuery,
} from '../../contract/statistics.ts'
import type { Handle } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import { brokenRule, DomainError } from '../shared/errors.ts'
import type { Scope } from '../shared/scope.ts'
import type { StatisticKind } from './figures.ts'
import { selectRanking, selectSeries, type TimeRange } from './queries.ts'
import { keptSince } from './retention.ts'
import { noFigures, sumOf, toEmails, toEmailTotals, toWebhooks, toWebhookTotals } from './to-response.ts'

/** Reading statistics. They are counted by `countRecipients` and `countingAttempts`. */
export type StatisticsService = {
  /**
   * Returns the figures of a mode of an account, in all and by hour or day. Throws `rule_violation` for a
   * domain or webhook that is not there, for more than one filter, and for a time that is too long or ends before it
   * begins.
   */
  get(handle: Handle, scope: Scope, query: StatisticsQuery): Promise<Statistics>
  /** Returns the busiest domains, tags or webhooks. Throws `rule_violation` like `get`. */
  rank(handle: Handle, scope: Scope, query: StatisticsRankingQuery): Promise<StatisticsRanking>
}

export type StatisticsServiceOptions = {
  clock: Clock
  /** How long figures by day are kept. Milliseconds. */
  statisticsMs: number
  /** Rejects with `not_found` for a domain that the account does not have. */
  checkDomain: (handle: Handle, scope: Scope, id: string) => Promise<unknown>
  /** Rejects with `not_found` for a webhook that the account does not have in this mode. */
  checkWebhook: (handle: Handle, scope: Scope, id: string) => Promise<unknown>
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const stepsMs = { hour: hourMs, day: dayMs } as const
const defaultSteps = { hour: 24, day: 30 } as const

export function createStatisticsService(options: StatisticsServiceOptions): StatisticsService {
  const { clock, statisticsMs, checkDomain, checkWebhook } = options

  return {
    async get(handle, scope, query) {
      const { step, domainId, tag, webhookId } = query
      const now = clock.now()
      const asked = rangeOf(query, { step, now, maxDays: maxRangeDays[step] })
      const kept = keptSince(step, now, statisticsMs)
      const range = { since: later(asked.since, kept), until: later(asked.until, kept) }
      refuseSeveral({ domainId, tag, webhookId })
      if (domainId !== undefined) await mustExist('query.domainId', checkDomain(handle, scope, domainId))
      if (webhookId !== undefined) await mustExist('query.webhookId', checkWebhook(handle, scope, webhookId))

      const read = (kind: StatisticKind, key = '') => selectSeries(handle, { ...range, scope, kind, key, step })
      const emails = await emailsOf()
      const webhooks = await webhooksOf()
      const [emailsByStart, webhooksByStart] = [byStart(emails), byStart(webhooks)]
      return {
        mode: scope.mode,
        step,
        since: range.since.toISOString(),
        until: range.until.toISOString(),
        keptSince: kept.toISOString(),
        totals: {
          emails: emails && toEmailTotals(sumOf(emails)),
          webhooks: webhooks && toWebhookTotals(sumOf(webhooks)),
        },
        data: startsIn(range, stepsMs[step]).map((start) => ({
          start: new Date(start).toISOString(),
          emails: emailsByStart && toEmails(emailsByStart.get(start) ?? noFigures()),
          webhooks: webhooksByStart && toWebhooks(webhooksByStart.get(start) ?? noFigures()),
        })),
      }

      async function emailsOf() {
        if (webhookId !== undefined) return null
        if (domainId !== undefined) return read('domain', domainId)
        return tag === undefined ? read('emails') : read('tag', tag)
      }

      async function webhooksOf() {
        if (webhookId !== undefined) return read('webhook', webhookId)
        return domainId === undefined && tag === undefined ? read('webhooks') : null
      }
    },
    async rank(handle, scope, query) {
      const { by, limit } = query
      const range = rangeOf(query, { step: 'day', now: clock.now(), maxDays: maxRangeDays.ranking })
      const rows = await selectRanking(handle, { ...range, scope, kind: by, limit })
      return {
        mode: scope.mode,
        by,
        since: range.since.toISOString(),
        until: range.until.toISOString(),
        data: rows.map(({ key, ...figures }) => ({
          key,
          emails: by === 'webhook' ? null : toEmailTotals(figures),
          webhooks: by === 'webhook' ? toWebhookTotals(figures) : null,
        })),
      }
    },
  }
}

type RangeRules = { step: 'hour' | 'day'; now: Date; maxDays: number }

/** Returns the hours or days that a request is about, whole. Throws `rule_violation` when there are too many or none. */
function rangeOf(query: { since?: string | undefined; until?: string | undefined }, rules: RangeRules): TimeRange {
  const { step, now, maxDays } = rules
  const stepMs = stepsMs[step]
  const until = query.until === undefined ? now.getTime() : Date.parse(query.until)
  const end = Math.ceil(until / stepMs) * stepMs
  const since = query.since === undefined ? end - defaultSteps[step] * stepMs : Date.parse(query.since)
  if (since >= until) {
    throw brokenRule('query.since', 'must be before `until`, which is now if it is not given')
  }
  if (until - since > maxDays * dayMs) {
    throw brokenRule('query.since', `must be at most ${maxDays} days before \`until\``)
  }
  return { since: new Date(Math.floor(since / stepMs) * stepMs), until: new Date(end) }
}

function refuseSeveral(filters: Record<'domainId' | 'tag' | 'webhookId', string | undefined>): void {
  const given = Object.entries(filters).flatMap(([name, value]) => (value === undefined ? [] : [name]))
  const [, second] = given
  if (second !== undefined) throw brokenRule(`query.${second}`, `cannot be given together with \`${given[0]}\``)
}

/** Throws `rule_violation` where `check` rejects with `not_found`: the path of the request is there. */
async function mustExist(path: string, check: Promise<unknown>): Promise<void> {
  try {
    await check
  } catch (error) {
    if (error instanceof DomainError && error.code === 'not_found') throw brokenRule(path, error.message)
    throw error
  }
}

function later(one: Date, other: Date): Date {
  return one > other ? one : other
}

function byStart<T extends { start: Date }>(rows: readonly T[] | null): Map<number, T> | null {
  return rows && new Map(rows.map((row) => [row.start.getTime(), row]))
}

function startsIn({ since, until }: TimeRange, stepMs: number): number[] {
  const count = Math.max(0, (until.getTime() - since.getTime()) / stepMs)
  return Array.from({ length: count }, (_, index) => since.getTime() + index * stepMs)
}
