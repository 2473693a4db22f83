import { found, mismatch, missing, multiple, quoted, type RecordCheck } from './check-result.ts'

/**
 * Checks the TXT records at the return path against the wanted SPF record. The record may allow other senders too.
 *
 * Source: RFC 7208 §3.2 and §4.5 (several records: a permanent error), §4.6.2 (the first match decides),
 * §5.1 (terms after `all` are ignored).
 */
export function judgeSpf(wanted: string, texts: readonly string[]): RecordCheck {
  const [record, ...others] = texts.filter((text) => /^v=spf1( |$)/i.test(text))
  if (record === undefined) return judgeNone(wanted, texts)
  if (others.length > 0) {
    return multiple(
      `There are ${others.length + 1} SPF records, which counts as an error (RFC 7208 §3.2). Keep one, and put the terms of all of them into it, before the "all".`,
    )
  }
  const missed = termsOf(wanted).filter((term) => !isAllowed(term, record))
  if (missed.length === 0) return found
  return mismatch(
    `The SPF record does not allow this service: found ${quoted(record)}. Add "${missed.join(' ')}" to it, before the "all".`,
  )
}

function judgeNone(wanted: string, texts: readonly string[]): RecordCheck {
  const similar = texts.find((text) => /v\s*=\s*spf1/i.test(text))
  if (similar === undefined) return missing
  return mismatch(
    `Mail servers do not take this for an SPF record: found ${quoted(similar)}. It must begin with "v=spf1 ", without quotation marks, as in "${wanted}".`,
  )
}

/** Returns true when the record passes a term: before `all`, and first with the qualifier `+` or none. */
function isAllowed(term: string, record: string): boolean {
  const terms = record.toLowerCase().split(' ').slice(1)
  const end = terms.findIndex((one) => /^[+?~-]?all$/.test(one))
  const read = end < 0 ? terms : terms.slice(0, end)
  const first = read.find((one) => one.replace(/^[+?~-]/, '') === term)
  return first === term || first === `+${term}`
}

/** Returns the terms of the wanted record without its version and the final `all`. */
function termsOf(wanted: string): string[] {
  return wanted.toLowerCase().split(' ').slice(1, -1)
}
