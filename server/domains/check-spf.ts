import { found, mismatch, missing, multiple, quoted, type RecordCheck } from './record-check.ts'

/**
 * What the texts at the return path are worth where `wanted` is the SPF record to be there. Others may be
 * allowed to send too.
 *
 * Source: RFC 7208 §3.2 and §4.5 (several records: a permanent error), §4.6.2 (the first match decides),
 * §5.1 (what stands behind `all` is ignored).
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

/** Whether a term passes, in the place where it stands. */
function isAllowed(term: string, record: string): boolean {
  const terms = record.toLowerCase().split(' ').slice(1)
  const end = terms.findIndex((one) => /^[+?~-]?all$/.test(one))
  const read = end < 0 ? terms : terms.slice(0, end)
  const first = read.find((one) => one.replace(/^[+?~-]/, '') === term)
  return first === term || first === `+${term}`
}

/** What a record of ours is there for: all but its version and its end. */
function termsOf(wanted: string): string[] {
  return wanted.toLowerCase().split(' ').slice(1, -1)
}
