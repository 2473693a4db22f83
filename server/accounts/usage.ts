import { type Account, type Allowance, mostCounted } from '../../contract/account.ts'
import { maxKeys } from '../../contract/api-keys.ts'
import { maxDomains } from '../../contract/domains.ts'
import type { Mode } from '../../contract/mode.ts'
import type { Statistics, StatisticsQuery } from '../../contract/statistics.ts'
import type { Handle } from '../database/connection.ts'
import type { Clock } from '../lib/clock.ts'
import type { Scope } from '../shared/scope.ts'
import { limitOfPlan, type RateLimits } from './plans.ts'
import { findAccount } from './queries.ts'
import { noAccount } from './service.ts'

/** Requests of an account in the minute that began at `start`. */
export type RequestsOfMinute = { start: Date; used: number }

/** The usage of an account, against its plan and limits. Throws DomainErrors. */
export type AccountUsageService = {
  /** Returns the account with its usage; of keys and months, those of the mode. Throws `not_found`. */
  get(handle: Handle, scope: Scope): Promise<Account>
}

/** Counts objects of an account, up to `most`. */
type Count<Of> = (handle: Handle, of: Of, most: number) => Promise<number>

export type AccountUsageOptions = {
  clock: Clock
  rateLimits: RateLimits
  maxWebhooks: number
  maxInvitations: number
  /** Returns the requests with keys of each minute since a time, the newest first. */
  requestsSince: (handle: Handle, of: { accountId: string; since: Date }) => Promise<RequestsOfMinute[]>
  count: {
    webhooks: Count<string>
    apiKeys: Count<{ accountId: string; mode: Mode }>
    domains: Count<string>
    members: Count<string>
    invitations: Count<{ accountId: string; now: Date }>
  }
  /** Returns the statistics of a scope. */
  statistics: (handle: Handle, scope: Scope, query: StatisticsQuery) => Promise<Statistics>
}

const minuteMs = 60_000
const hourMs = 60 * minuteMs

export function createAccountUsageService(options: AccountUsageOptions): AccountUsageService {
  const { clock, rateLimits, count } = options

  return {
    async get(handle, scope) {
      const { accountId, mode } = scope
      const row = await findAccount(handle, accountId)
      if (row === undefined) throw noAccount(accountId)
      const now = clock.now()
      const limit = limitOfPlan(rateLimits, row.plan)
      const since = new Date(now.getTime() - hourMs)
      const minutes = await options.requestsSince(handle, { accountId, since })
      const used = async (counting: Promise<number>, max: number | null): Promise<Allowance> => ({
        used: await counting,
        limit: max,
      })
      const [month, monthBefore] = monthsBefore(now)
      const statistics = await options.statistics(handle, scope, {
        step: 'day',
        since: monthBefore.since.toISOString(),
      })
      return {
        id: row.id,
        name: row.name,
        plan: row.plan,
        createdAt: row.created_at.toISOString(),
        mode,
        requests: toRequests(minutes, { limit, now }),
        webhooks: await used(count.webhooks(handle, accountId, mostCounted), options.maxWebhooks),
        apiKeys: await used(count.apiKeys(handle, { accountId, mode }, mostCounted), maxKeys),
        domains: await used(count.domains(handle, accountId, mostCounted), maxDomains),
        members: await used(count.members(handle, accountId, mostCounted), null),
        invitations: await used(count.invitations(handle, { accountId, now }, mostCounted), options.maxInvitations),
        months: [toMonth(statistics, month), toMonth(statistics, monthBefore)],
      }
    },
  }
}

/** A process may count requests above the limit that it then refuses: no more than the limit were allowed. */
function toRequests(minutes: readonly RequestsOfMinute[], { limit, now }: { limit: number; now: Date }) {
  const start = Math.floor(now.getTime() / minuteMs) * minuteMs
  const allowed = minutes.map(({ start: at, used }) => ({ at, used: Math.min(used, limit) }))
  const busiest = allowed.reduce<(typeof allowed)[number] | null>(
    (most, one) => (most === null || one.used > most.used ? one : most),
    null,
  )
  return {
    limit,
    used: allowed.find(({ at }) => at.getTime() === start)?.used ?? 0,
    resetAt: new Date(start + minuteMs).toISOString(),
    busiest: busiest && { at: busiest.at.toISOString(), used: busiest.used },
  }
}

type Month = { since: Date; until: Date }

/** Returns the month of `now` and the one before it, in UTC. */
function monthsBefore(now: Date): [Month, Month] {
  const start = (back: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back))
  return [
    { since: start(0), until: start(-1) },
    { since: start(1), until: start(0) },
  ]
}

function toMonth({ data, keptSince }: Statistics, { since, until }: Month): Account['months'][number] {
  const [from, to] = [since.toISOString(), until.toISOString()]
  const days = data.filter(({ start }) => start >= from && start < to)
  const emails = (figure: 'sent' | 'delivered' | 'bounced' | 'complained' | 'failed' | 'suppressed') =>
    days.reduce((sum, day) => sum + (day.emails?.[figure] ?? 0), 0)
  const webhooks = (figure: 'attempts' | 'succeededDeliveries' | 'failedDeliveries') =>
    days.reduce((sum, day) => sum + (day.webhooks?.[figure] ?? 0), 0)
  return {
    since: keptSince > from && keptSince < to ? keptSince : from,
    until: to,
    emails: {
      sent: emails('sent'),
      delivered: emails('delivered'),
      bounced: emails('bounced'),
      complained: emails('complained'),
      failed: emails('failed'),
      suppressed: emails('suppressed'),
    },
    webhooks: {
      attempts: webhooks('attempts'),
      succeededDeliveries: webhooks('succeededDeliveries'),
      failedDeliveries: webhooks('failedDeliveries'),
    },
  }
}
