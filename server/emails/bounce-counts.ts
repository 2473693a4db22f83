import { sql } from 'kysely'
import { countedBounces, type DomainDeliverability } from '../../contract/deliverability.ts'
import type { Handle } from '../database/connection.ts'
import type { Scope } from '../shared/scope.ts'
import { mailboxProviderOf } from '../statistics/mailbox-providers.ts'

/** Groups of recipients that are returned at most. */
const maxGroups = 20

type Group = { bounced: number; latestId: string; domain: string }
type BouncesOfDomain = Group & { since: Date }

/**
 * Counts the recipients that bounced of the newest 500 bounced live emails from a sending domain: by their domain, and by
 * the mailbox provider that it belongs to. Test emails have no sending domain, so in test mode there is nothing to count.
 * Reads the emails from the index `emails_bounced`.
 */
export async function countBounces(
  handle: Handle,
  { accountId, mode }: Scope,
  domainId: string,
): Promise<DomainDeliverability['bounces']> {
  if (mode === 'test') return { since: null, byRecipientDomain: [], byProvider: [] }
  const domains = await selectBouncesByDomain(handle, accountId, domainId)
  const byDomain = largest(new Map(domains.map((row) => [row.domain, row])))
  const byProvider = largest(mergeByProvider(domains))
  const reasonOf = await selectReasons(
    handle,
    [...byDomain, ...byProvider].map(([, group]) => group),
  )
  return {
    since: domains[0]?.since.toISOString() ?? null,
    byRecipientDomain: byDomain.map(([domain, group]) => ({
      domain,
      bounced: group.bounced,
      reason: reasonOf(group),
    })),
    byProvider: byProvider.map(([name, group]) => ({
      kind: mailboxProviderOf(group.domain) === null ? 'domain' : 'provider',
      name,
      bounced: group.bounced,
      reason: reasonOf(group),
    })),
  }
}

async function selectBouncesByDomain(handle: Handle, accountId: string, domainId: string): Promise<BouncesOfDomain[]> {
  const { rows } = await sql<BouncesOfDomain>`
    WITH newest AS MATERIALIZED (
      SELECT id, created_at FROM emails
      WHERE account_id = ${accountId} AND domain_id = ${domainId} AND status = 'bounced'
      ORDER BY id DESC LIMIT (SELECT ${countedBounces}::bigint)
    )
    SELECT r.domain, count(*)::integer AS bounced, max(n.id) AS "latestId", (SELECT min(created_at) FROM newest) AS since
    FROM newest n CROSS JOIN LATERAL (
      SELECT domain FROM email_recipients WHERE email_id = n.id AND status = 'bounced' OFFSET 0
    ) r
    GROUP BY r.domain
  `.execute(handle)
  return rows
}

/** Returns the groups by provider, or by domain where it belongs to no well-known one. */
function mergeByProvider(domains: readonly Group[]): Map<string, Group> {
  const groups = new Map<string, Group>()
  for (const group of domains) {
    const name = mailboxProviderOf(group.domain) ?? group.domain
    const before = groups.get(name)
    const latest = before !== undefined && before.latestId > group.latestId ? before : group
    groups.set(name, { ...latest, bounced: group.bounced + (before?.bounced ?? 0) })
  }
  return groups
}

/** Returns the groups with the most bounces, the most first. */
function largest(groups: ReadonlyMap<string, Group>): [string, Group][] {
  return [...groups]
    .toSorted(([a, { bounced: ofA }], [b, { bounced: ofB }]) => ofB - ofA || (a < b ? -1 : 1))
    .slice(0, maxGroups)
}

/** Returns a function that returns why the latest recipient of a group bounced. */
async function selectReasons(handle: Handle, groups: readonly Group[]): Promise<(group: Group) => string | null> {
  const { rows } = await sql<{ latestId: string; domain: string; reason: string | null }>`
    SELECT g.id AS "latestId", g.domain, r.reason
    FROM unnest(${groups.map(({ latestId }) => latestId)}::text[], ${groups.map(({ domain }) => domain)}::text[])
      AS g (id, domain)
    CROSS JOIN LATERAL (
      SELECT reason FROM email_recipients WHERE email_id = g.id AND domain = g.domain AND status = 'bounced'
      ORDER BY position LIMIT 1
    ) r
  `.execute(handle)
  const reasons = new Map(rows.map(({ latestId, domain, reason }) => [`${latestId} ${domain}`, reason]))
  return ({ latestId, domain }) => {
    const reason = reasons.get(`${latestId} ${domain}`) ?? null
    return reason && withoutAddresses(reason)
  }
}

/** Mail servers quote the recipient, whom a caller may see with permission to read emails only. */
function withoutAddresses(reason: string): string {
  return reason.replaceAll(/(?:"[^"]*"|[^\s<>()[\]"',;:]+)@[^\s<>()[\]"',;:]+/g, '…')
}
