import { sql } from 'kysely'
import { countedBounces, type DomainDeliverability } from '../../contract/deliverability.ts'
import type { Handle } from '../database/connection.ts'
import type { Scope } from '../shared/scope.ts'

/** Recipient domains that are returned at most. */
const maxRecipientDomains = 20
/** Bounced emails of both modes that are looked at. */
const lookedAt = 10 * countedBounces

/**
 * Counts the recipients that bounced, by their domain, of the emails from a sending domain among the newest 500 bounced
 * live emails of its account. Test emails have no sending domain, so in test mode there is nothing to count. Reads them
 * from the index `emails_undelivered`.
 */
export async function countBounces(
  handle: Handle,
  { accountId, mode }: Scope,
  domainId: string,
): Promise<DomainDeliverability['bounces']> {
  if (mode === 'test') return { since: null, byRecipientDomain: [] }
  const { rows } = await sql<{ domain: string | null; bounced: number; reason: string | null; since: Date | null }>`
    WITH newest AS MATERIALIZED (
      SELECT id, domain_id, created_at FROM (
        SELECT id, mode, domain_id, created_at FROM emails
        WHERE account_id = ${accountId} AND status = 'bounced'
          -- The condition of the index.
          AND status NOT IN ('sent', 'delivered', 'validated')
        ORDER BY id DESC LIMIT (SELECT ${lookedAt}::bigint)
      ) bounced
      WHERE mode = 'live'
      ORDER BY id DESC LIMIT (SELECT ${countedBounces}::bigint)
    ), counted AS (
      SELECT r.domain, count(*)::integer AS bounced, (array_agg(r.reason ORDER BY n.id DESC))[1] AS reason
      FROM newest n CROSS JOIN LATERAL (
        SELECT domain, reason FROM email_recipients WHERE email_id = n.id AND status = 'bounced' OFFSET 0
      ) r
      WHERE n.domain_id = ${domainId}
      GROUP BY r.domain ORDER BY bounced DESC, r.domain LIMIT ${maxRecipientDomains}
    )
    SELECT domain, bounced, reason, since
    FROM (SELECT min(created_at) AS since FROM newest) AS s LEFT JOIN counted ON true
    ORDER BY bounced DESC, domain
  `.execute(handle)
  return {
    since: rows[0]?.since?.toISOString() ?? null,
    byRecipientDomain: rows.flatMap(({ domain, bounced, reason }) =>
      domain === null ? [] : [{ domain, bounced, reason: reason && withoutAddresses(reason) }],
    ),
  }
}

/** Mail servers quote the recipient, whom a caller may see with permission to read emails only. */
function withoutAddresses(reason: string): string {
  return reason.replaceAll(/(?:"[^"]*"|[^\s<>()[\]"',;:]+)@[^\s<>()[\]"',;:]+/g, '…')
}
