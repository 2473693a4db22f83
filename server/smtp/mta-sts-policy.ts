/** The MTA-STS policy of a domain. Source: RFC 8461 §3.2. */
export type StsPolicy = {
  mode: 'enforce' | 'testing' | 'none'
  maxAgeSeconds: number
  /** Names of hosts, or `*.` and the rest of a name, in lower case. */
  mx: readonly string[]
}

/** The maximum of the RFC: about a year. */
const maxMaxAgeSeconds = 31_557_600

/** Returns the id of the policy that a domain announces at `_mta-sts`; null: there is none, or it is invalid. */
export function policyIdOf(records: readonly (readonly string[])[]): string | null {
  const announced = records.map((parts) => parts.join('')).filter((text) => /^v=STSv1(?:\s*;|$)/.test(text))
  // More than one record counts as none (§3.1).
  const [text, ...others] = announced
  if (text === undefined || others.length > 0) return null
  return /;\s*id\s*=\s*([A-Za-z0-9]{1,32})\s*(?:;|$)/.exec(text)?.[1] ?? null
}

/**
 * Parses a policy file. Null: it is invalid. Unknown fields are ignored. The file is untrusted input, so it is read
 * in one pass.
 */
export function parsePolicy(text: string): StsPolicy | null {
  const fields = text.split(/\r\n|\r|\n/).flatMap((line) => {
    const colon = line.indexOf(':')
    return colon < 0 ? [] : [{ key: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() }]
  })
  const first = (wanted: string) => fields.find(({ key }) => key === wanted)?.value
  const mode = first('mode')
  const maxAge = first('max_age') ?? ''
  const mx = fields.flatMap(({ key, value }) => (key === 'mx' ? [value.toLowerCase()] : []))
  if (first('version') !== 'STSv1' || !isMode(mode) || !/^\d{1,10}$/.test(maxAge)) return null
  if (mode !== 'none' && mx.length === 0) return null
  return { mode, maxAgeSeconds: Math.min(Number(maxAge), maxMaxAgeSeconds), mx }
}

function isMode(mode: string | undefined): mode is StsPolicy['mode'] {
  return mode === 'enforce' || mode === 'testing' || mode === 'none'
}

/** Returns whether a policy allows a host: by its name, or by a `*` in place of its first label (§4.1). */
export function allowsHost({ mx }: StsPolicy, host: string): boolean {
  const parent = host.slice(host.indexOf('.'))
  return mx.some((pattern) => pattern === host || (pattern.startsWith('*.') && pattern.slice(1) === parent))
}
