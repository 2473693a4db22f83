import { found, mismatch, missing, multiple, quoted, type RecordCheck } from './check-result.ts'

/** Longest string in a TXT record. Some DNS software cuts a text to one string. Source: RFC 1035 §3.3. */
const maxString = 255

/**
 * Checks the TXT records at a selector against the wanted record. A record with the same meaning, but other spaces or
 * additional tags, is accepted.
 *
 * Source: RFC 6376 §3.6.1, §3.6.2.2 (several records: undefined), RFC 8463.
 */
export function judgeDkim(wanted: string, texts: readonly string[]): RecordCheck {
  const [key, ...others] = texts.filter((text) => /(^|[;\s"])p\s*=/i.test(text))
  if (key === undefined) return missing
  if (others.length > 0) {
    return multiple(
      `There are ${others.length + 1} DKIM records, and which one counts is not defined. Keep the one shown.`,
    )
  }
  if (saysTheSame(wanted, key)) return { ...found, hint: hintOfTesting(key) }
  return mismatch(hintOfDifference(wanted, key, texts))
}

function hintOfDifference(wanted: string, key: string, texts: readonly string[]): string {
  const bare = key.replaceAll(/["\\]/g, '')
  if (bare !== key && saysTheSame(wanted, bare)) {
    return 'The value holds quotation marks or backslashes. Enter it without them: the DNS provider adds what it needs.'
  }
  const [is, should] = [keyOf(key), keyOf(wanted)]
  if (is === '') return 'The key is empty, which means that it was revoked. Publish the value as shown.'
  if (is !== should && should.startsWith(is)) {
    const rest = texts.find((text) => text !== key && wanted.endsWith(text))
    if (rest !== undefined) {
      return `The value is spread over several TXT records. Publish one record, of several strings if need be: "…" "…".`
    }
    const where =
      key.length === maxString ? `${maxString} characters, the length of one string` : `${key.length} characters`
    return `The value is cut off after ${where}. Publish all of it, in one record of several strings if need be: "…" "…".`
  }
  if (is !== should) return `The key is another one: found ${quoted(key)}. Publish the value as shown.`
  return `The key is right, but what stands beside it keeps it from being used: found ${quoted(key)}. Publish the value as shown.`
}

function saysTheSame(wanted: string, text: string): boolean {
  const [is, should] = [tagsOf(text), tagsOf(wanted)]
  const listOf = (tag: string) => is.get(tag)?.toLowerCase().split(':')
  return (
    (is.get('v') ?? 'DKIM1') === 'DKIM1' &&
    (is.get('k') ?? 'rsa').toLowerCase() === should.get('k') &&
    is.get('p') === should.get('p') &&
    (listOf('h')?.includes('sha256') ?? true) &&
    (listOf('s')?.some((service) => service === '*' || service === 'email') ?? true)
  )
}

function hintOfTesting(key: string): string | null {
  const isTesting = tagsOf(key).get('t')?.toLowerCase().split(':').includes('y')
  return isTesting
    ? 'It says "t=y": receivers take signatures for a test and may not believe them. Take that out.'
    : null
}

function keyOf(text: string): string {
  return tagsOf(text).get('p') ?? ''
}

/** Returns the tags of a record, without white space. Source: RFC 6376 §3.2. */
function tagsOf(text: string): Map<string, string> {
  return new Map(
    text.split(';').flatMap((part) => {
      const at = part.indexOf('=')
      return at < 0 ? [] : [[part.slice(0, at).trim(), part.slice(at + 1).replaceAll(/\s/g, '')]]
    }),
  )
}
