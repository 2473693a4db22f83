import { expect, test } from 'vitest'
import { recordsOf } from '../../server/domains/records.ts'
import {
  afterCheck,
  beginning,
  type CheckResult,
  checkResultOf,
  type Progress,
} from '../../server/domains/verification-state.ts'
import { sender } from '../support/worlds/domains.ts'

const start = new Date('2026-03-01T09:30:00.000Z')
const minuteMs = 60_000
const hourMs = 60 * minuteMs
const at = (ms: number) => new Date(start.getTime() + ms)

/** Lets the schedule check until it stops or `times` is reached; answers when it did, in minutes, and what came of it. */
function follow(
  before: Progress,
  verdicts: (check: number) => CheckResult,
  times = 1_000,
): { minutes: number[]; last: Progress } {
  const minutes: number[] = []
  let last = before
  for (let check = 0; check < times && last.next_check_at !== null; check++) {
    const due = last.next_check_at
    minutes.push((due.getTime() - start.getTime()) / minuteMs)
    last = afterCheck(last, { verdict: verdicts(check), by: 'schedule', at: due })
  }
  return { minutes, last }
}

function verifiedAt(ms: number): Progress {
  return afterCheck(beginning(start), { verdict: 'complete', by: 'schedule', at: at(ms) })
}

test('a domain whose records are missing is checked with growing pauses of up to 6 hours, the last time after 72, and has failed then', () => {
  const { minutes, last } = follow(beginning(start), () => 'incomplete')
  const pauses = minutes.map((minute, index) => minute - (minutes[index - 1] ?? 0))
  expect(pauses.slice(0, 10)).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 360])
  expect(Math.max(...pauses)).toBe(6 * 60)
  expect(minutes.at(-1)).toBe(72 * 60)
  expect(last).toMatchObject({ status: 'failed', next_check_at: null, verified_at: null })
})

test('a domain whose records are missing is verified whenever they are there', () => {
  const { last } = follow(beginning(start), (check) => (check === 5 ? 'complete' : 'incomplete'), 6)
  expect(last).toMatchObject({
    status: 'verified',
    check_count: 0,
    verified_at: at(63 * minuteMs),
    next_check_at: at(63 * minuteMs + 24 * hourMs),
  })
})

test('a domain whose records are missing has failed after 72 hours of name servers that cannot be asked, too', () => {
  expect(follow(beginning(start), () => 'unclear').last.status).toBe('failed')
})

test('a domain whose records are missing fails no sooner when it is asked for again and again', () => {
  let progress = beginning(start)
  for (let i = 0; i < 100; i++) progress = afterCheck(progress, { verdict: 'incomplete', by: 'request', at: at(i) })
  expect(progress).toEqual(beginning(start))
})

test('a verified domain is checked daily', () => {
  const { minutes } = follow(verifiedAt(0), () => 'complete', 3)
  expect(minutes).toEqual([24 * 60, 48 * 60, 72 * 60])
})

test('a verified domain keeps the time it was verified at', () => {
  expect(follow(verifiedAt(0), () => 'complete', 3).last.verified_at).toEqual(start)
})

test('a verified domain has failed after three daily checks in a row that missed a record', () => {
  const { minutes, last } = follow(verifiedAt(0), () => 'incomplete')
  expect(minutes).toEqual([24 * 60, 48 * 60, 72 * 60])
  expect(last).toMatchObject({ status: 'failed', next_check_at: null })
})

test('a verified domain stays so when the records come back in between', () => {
  const { last } = follow(verifiedAt(0), (check) => (check % 3 === 2 ? 'complete' : 'incomplete'), 30)
  expect(last).toMatchObject({ status: 'verified', check_count: 0 })
})

test('a verified domain stays so for as long as name servers cannot be asked, and is checked again in an hour', () => {
  const { minutes, last } = follow(verifiedAt(0), () => 'unclear', 500)
  expect(last).toMatchObject({ status: 'verified', check_count: 0 })
  expect(minutes.slice(0, 3)).toEqual([24 * 60, 25 * 60, 26 * 60])
})

test('a verified domain is not harmed by requests', () => {
  const verified = verifiedAt(0)
  expect(afterCheck(verified, { verdict: 'incomplete', by: 'request', at: at(1) })).toEqual(verified)
})

const failed = follow(beginning(start), () => 'incomplete').last
const later = at(100 * hourMs)

test('a failed domain begins anew when it is asked for', () => {
  expect(afterCheck(failed, { verdict: 'incomplete', by: 'request', at: later })).toEqual(beginning(later))
})

test('a failed domain is verified when its records are there then', () => {
  expect(afterCheck(failed, { verdict: 'complete', by: 'request', at: later })).toMatchObject({
    status: 'verified',
    verified_at: later,
  })
})

const wanted = recordsOf(
  {
    name: 'example.com',
    return_path: 'send.example.com',
    rsa_selector: 'r',
    rsa_public_key: 'a',
    ed25519_selector: 'e',
    ed25519_public_key: 'b',
  },
  sender,
)
const good = { status: 'verified', hint: null } as const
const required = { dkim_rsa: good, spf: good, return_path: good }
const of = (status: 'missing' | 'mismatch' | 'multiple' | 'dangling' | 'timeout' | 'server_failure') => ({
  status,
  hint: null,
})

test('the verdict needs DKIM with RSA, SPF and the return path, and nothing else', () => {
  expect(checkResultOf(wanted, { ...required, dkim_ed25519: of('missing'), dmarc: of('multiple') })).toBe('complete')
})

test.each(['dkim_rsa', 'spf', 'return_path'] as const)('the verdict depends on %s', (purpose) => {
  for (const status of ['missing', 'mismatch', 'multiple', 'dangling'] as const) {
    expect(checkResultOf(wanted, { ...required, [purpose]: of(status) })).toBe('incomplete')
  }
  for (const status of ['timeout', 'server_failure'] as const) {
    expect(checkResultOf(wanted, { ...required, [purpose]: of(status) })).toBe('unclear')
  }
})

test('the verdict is that a record is missing, whatever could not be asked beside it', () => {
  expect(checkResultOf(wanted, { ...required, spf: of('timeout'), return_path: of('missing') })).toBe('incomplete')
})
