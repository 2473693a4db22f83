type Tone = 'good' | 'bad' | 'warn' | 'busy' | 'none'

const tones: Readonly<Record<string, Tone>> = {
  active: 'good',
  complained: 'bad',
  completed: 'good',
  delivered: 'good',
  enabled: 'good',
  handed_over: 'good',
  pass: 'good',
  published: 'good',
  verified: 'good',
  succeeded: 'good',
  accepted: 'good',
  sent: 'good',
  bounced: 'bad',
  fail: 'bad',
  failed: 'bad',
  missing: 'bad',
  mismatch: 'bad',
  multiple: 'bad',
  dangling: 'bad',
  revoked: 'bad',
  expired: 'bad',
  changed: 'warn',
  deferred: 'warn',
  paused: 'warn',
  server_failure: 'warn',
  skipped: 'warn',
  suppressed: 'warn',
  timeout: 'warn',
  unknown: 'warn',
  unsubscribed: 'warn',
  warn: 'warn',
  disabled: 'warn',
  opened: 'good',
  clicked: 'good',
  relayed: 'good',
  expanded: 'good',
  pending: 'busy',
  queued: 'busy',
  running: 'busy',
  uploading: 'busy',
  scheduled: 'busy',
  sending: 'busy',
  waiting: 'busy',
}

/** A state as a word with a colour. A state that is not known has no colour. */
export function State({ of }: { of: string }) {
  return (
    <span className="state" data-tone={tones[of] ?? 'none'}>
      {wordOf(of)}
    </span>
  )
}

/** Returns a word of the API for people: `hard_bounce` as "Hard bounce", `api_key` as "API key". */
export function wordOf(state: string): string {
  const words = state.replaceAll('_', ' ')
  return words.startsWith('api') ? `API${words.slice(3)}` : words.charAt(0).toUpperCase() + words.slice(1)
}
