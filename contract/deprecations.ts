/** A query parameter or an operation that has a successor, and goes on working until its sunset. */
export type Deprecation = {
  /** Of the query. Default: the operation itself is deprecated. */
  parameter?: string
  /** The replacement: the name of a parameter or the `operationId` of an operation. */
  use: string
  /** Since when it is deprecated: ISO 8601. Source of the header: RFC 9745. */
  deprecatedAt: string
  /** Until when it works at least: ISO 8601, a year later or more. Source of the header: RFC 8594. */
  sunsetAt: string
}

/*
 * Everything that is deprecated. An operation names in its `outcome` what of it is. The published spec, the headers of
 * answers and the tests read it there.
 */

/** The former name of the time filter `since`. */
export const formerSince: Deprecation = {
  parameter: 'from',
  use: 'since',
  deprecatedAt: '2026-12-01T00:00:00Z',
  sunsetAt: '2027-12-01T00:00:00Z',
}
