/** The identity of a span and its trace. */
export type TraceContext = {
  /** 32 hexadecimal digits, lowercase. */
  traceId: string
  /** 16 hexadecimal digits, lowercase. */
  spanId: string
  /** True when the caller may have recorded the span. */
  sampled: boolean
}

const pattern = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/

/**
 * Parses a `traceparent`, also of a later version. Returns null when it is malformed.
 *
 * Source: W3C Trace Context §3.2.2 (the fields), §3.2.4 (versions).
 */
export function parseTraceparent(value: string): TraceContext | null {
  const [, version, traceId = '', spanId = '', flags = '', rest] = pattern.exec(value) ?? []
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return null
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return null
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** Returns a `traceparent` of version 00. */
export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`
}
