/** A change that could break a client of the last release, and why it is made all the same. */
export type AcceptedChange = {
  /** Matches the whole of what `breakingChanges` says. */
  change: RegExp
  reason: string
}

/** Begins anew with every release: what was released was accepted. */
export const acceptedChanges: readonly AcceptedChange[] = [
  {
    change: /.*: (?:maxLength|maxItems|maxProperties) is lower/,
    reason: 'Every value has an upper bound, so that no request holds others up. Each is above what the server took.',
  },
  {
    change: /.*\b(?:to|cc|bcc|replyTo): (?:anyOf|oneOf) came or went/,
    reason: 'The same values as before. Generators for Rust made an empty type of `anyOf`.',
  },
  {
    change: /.*\b(?:from|recipient|address): pattern is another/,
    reason: 'The pattern says what the server took before; there was none.',
  },
  {
    change: /POST \/v1\/emails.*: pattern is another/,
    reason: 'Lines refuse U+0085, U+2028 and U+2029, which mail readers take for line breaks.',
  },
  {
    change: /GET \/v1\/emails, query tag: pattern is another/,
    reason: 'No tag can have what the pattern refuses now.',
  },
]
