import type { RowOf } from '../../api/hooks.ts'

export type Request = RowOf<'GET /v1/request-logs'>

/** Statuses that a reader can look for, and how the API names them. */
export const statusFilters = [
  { value: 'failed', label: 'All failures' },
  { value: '4xx', label: '4xx: the request was wrong' },
  { value: '5xx', label: '5xx: the service failed' },
  { value: 'aborted', label: 'Aborted by the client' },
] as const

/** The status of an answer: its number, or that there was none, with a colour. */
export function RequestStatus({ status }: Pick<Request, 'status'>) {
  return (
    <span className="state" data-tone={toneOf(status)}>
      {status ?? 'Aborted'}
    </span>
  )
}

function toneOf(status: Request['status']): 'good' | 'warn' | 'bad' {
  if (status === null || status >= 500) return 'bad'
  return status < 400 ? 'good' : 'warn'
}

/** Returns a duration with its unit: milliseconds below 10 seconds. */
export function durationOf({ durationMs }: Pick<Request, 'durationMs'>): string {
  if (durationMs >= 10_000) return `${(durationMs / 1_000).toFixed(1)} s`
  return `${durationMs < 10 ? durationMs.toFixed(1) : Math.round(durationMs).toLocaleString('en')} ms`
}
