import { found, mismatch, missing, multiple, quoted, type RecordCheck } from './check-result.ts'
import type { MxRecord } from './dns.ts'

/** Checks the MX records of the return path: `wanted` must be the only host with the best priority. */
export function judgeMx(wanted: string, records: readonly MxRecord[]): RecordCheck {
  if (records.length === 0) return missing
  const hostOf = ({ exchange }: MxRecord) => exchange.toLowerCase().replace(/\.$/, '')
  const ours = records.filter((record) => hostOf(record) === wanted)
  if (ours.length === 0) {
    const hosts = records.map((record) => quoted(hostOf(record))).join(', ')
    return mismatch(`The MX leads elsewhere: found ${hosts}. Bounces would be lost: publish "${wanted}" alone.`)
  }
  const best = Math.min(...ours.map(({ priority }) => priority))
  const others = records.filter((record) => hostOf(record) !== wanted)
  const before = others.find(({ priority }) => priority < best)
  if (before !== undefined) {
    return mismatch(
      `Bounces go to ${quoted(hostOf(before))} first, whose priority ${before.priority} comes before ${best}. Remove it.`,
    )
  }
  // Senders choose randomly among hosts of the same priority. Source: RFC 5321 §5.1.
  const beside = others.find(({ priority }) => priority === best)
  if (beside === undefined) return found
  return mismatch(
    `Some bounces go to ${quoted(hostOf(beside))}, which has the same priority ${best}, and would be lost. Remove it.`,
  )
}

/** Checks the TXT records at `_dmarc`. Any policy is accepted. Source: RFC 7489 §6.6.3. */
export function judgeDmarc(texts: readonly string[]): RecordCheck {
  const [record, ...others] = texts.filter((text) => /^v\s*=\s*DMARC1\s*(;|$)/.test(text))
  if (record === undefined) return missing
  if (others.length === 0) return found
  return multiple(`There are ${others.length + 1} DMARC records, and receivers then apply none. Keep one.`)
}
