/** A query parameter that has a successor and goes on working until its sunset. */
export type Deprecation = {
  operationId: string
  parameter: string
  /** What to use instead. */
  use: string
  /** Since when it is deprecated: ISO 8601. Source of the header: RFC 9745. */
  deprecatedAt: string
  /** Until when it works at least: ISO 8601, a year later or more. Source of the header: RFC 8594. */
  sunsetAt: string
}

const timeFilters = {
  parameter: 'from',
  use: 'since',
  deprecatedAt: '2026-12-01T00:00:00Z',
  sunsetAt: '2027-12-01T00:00:00Z',
}

/** Everything that is deprecated. The published spec, the headers of answers and the tests read this one table. */
export const deprecations: readonly Deprecation[] = [
  { operationId: 'listEmails', ...timeFilters },
  { operationId: 'listDeliveries', ...timeFilters },
]

/** The deprecated parameters of one operation. */
export function deprecationsOf(operationId: string): readonly Deprecation[] {
  return deprecations.filter((deprecation) => deprecation.operationId === operationId)
}
