import { IconAlertTriangle } from '@tabler/icons-react'
import type { ApiError } from '../../api/client.ts'
import { useFirstReading, useGet, useGetEach } from '../../api/hooks.ts'
import { useScope } from '../../api/scope.tsx'
import { ErrorNotice } from '../../components/error-notice.tsx'
import { Section } from '../../components/facts.tsx'
import { ScreenLink } from '../../components/screen-link.tsx'
import { type Finding, findingsOf, type Known, unlistedOf } from './findings.ts'
import { daysAgo } from './period.ts'

const pollMs = 60_000
/** Number of webhooks and of domains that are read: the newest. Of as many of the busiest, the rates are read. */
const limit = 100

type Failed = { error: ApiError | null; refetch: () => unknown }

/** Reads what needs attention. `failed`: requests that have failed and never returned anything. */
export function useFindings(): { findings: Finding[]; isReading: boolean; failed: Failed[] } {
  const { can } = useScope()
  const ofDomains = { pollMs: () => pollMs, enabled: can('domains:read') }
  const ofWebhooks = { pollMs: () => pollMs, enabled: can('webhooks:read') }
  const lastWeek = { by: 'domain', since: daysAgo(6), limit } as const
  const lastDay = { by: 'webhook', since: daysAgo(1), limit } as const
  const domains = useGet('GET /v1/domains', { query: { limit } }, ofDomains)
  const webhooks = useGet('GET /v1/webhooks', { query: { limit } }, ofWebhooks)
  const domainFigures = useGet('GET /v1/statistics/ranking', { query: lastWeek }, ofDomains)
  const webhookFigures = useGet('GET /v1/statistics/ranking', { query: lastDay }, ofWebhooks)
  const account = useGet('GET /v1/account', {}, { pollMs: () => pollMs })
  const listed: Known = {
    account: account.data ?? null,
    domains: domains.data?.data ?? [],
    webhooks: webhooks.data?.data ?? [],
    domainFigures: domainFigures.data?.data ?? [],
    webhookFigures: webhookFigures.data?.data ?? [],
  }
  // Older than the newest, or deleted: those that are not on a page with all there is are deleted.
  const unlisted = unlistedOf(listed)
  const idsWhere = (page: { nextCursor: string | null } | undefined, ids: string[]) =>
    page == null || page.nextCursor === null ? [] : ids.map((id) => ({ params: { id } }))
  const olderDomains = useGetEach('GET /v1/domains/:id', idsWhere(domains.data, unlisted.domains))
  const olderWebhooks = useGetEach('GET /v1/webhooks/:id', idsWhere(webhooks.data, unlisted.webhooks))
  const findings = findingsOf({
    ...listed,
    domains: [...listed.domains, ...olderDomains.flatMap(({ data }) => data ?? [])],
    webhooks: [...listed.webhooks, ...olderWebhooks.flatMap(({ data }) => data ?? [])],
  })
  const all = [account, domains, webhooks, domainFigures, webhookFigures]
  const older = [...olderDomains, ...olderWebhooks]
  const isFirst = useFirstReading([...all, ...older])
  const isReading = isFirst || all.some(({ isLoading }) => isLoading)
  const failed = [...all, ...older.filter(({ error }) => error?.status !== 404)].filter(
    ({ data, isError }) => data === undefined && isError,
  )
  return { findings, isReading, failed }
}

type Props = { findings: readonly Finding[]; failed: readonly Failed[] }

/**
 * The findings that need attention, each with a link to the screen that solves it, and why some may be missing. Nothing
 * where there is neither.
 */
export function Attention({ findings, failed }: Props) {
  const error = failed[0]?.error ?? null
  if (findings.length === 0 && error === null) return null
  const retry = () => {
    for (const { refetch } of failed) void refetch()
  }
  return (
    <Section title="Needs attention">
      {error !== null && <ErrorNotice error={error} title="Not all of it could be read" onRetry={retry} />}
      {findings.length > 0 && (
        <ul className="findings">
          {findings.map(({ tone, about, text, link }) => (
            <li key={`${about} ${text}`} data-tone={tone}>
              <IconAlertTriangle size={17} stroke={1.6} aria-label={tone === 'bad' ? 'Problem' : 'Warning'} />
              <div>
                <strong>{about}</strong>
                <p>{text}</p>
              </div>
              <ScreenLink to={link.to}>{link.label}</ScreenLink>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}
