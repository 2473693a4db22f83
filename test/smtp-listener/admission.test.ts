import { expect, test } from 'vitest'
import { createConnectionLimiter } from '../../server/smtp-listener/admission.ts'

function createTestLimiter() {
  let now = Date.parse('2026-03-01T09:30:00Z')
  const limiter = createConnectionLimiter(
    { connectionsPerAddress: 2, connectionsPerMinute: 4 },
    { now: () => new Date(now) },
  )
  const advance = (ms: number) => {
    now += ms
  }
  return { limiter, advance }
}

test('an address may have a number of connections open at a time', () => {
  const { limiter } = createTestLimiter()
  expect([limiter.enter('192.0.2.1'), limiter.enter('192.0.2.1'), limiter.enter('192.0.2.1')]).toEqual([
    true,
    true,
    false,
  ])
  expect(limiter.enter('192.0.2.2')).toBe(true)
  limiter.leave('192.0.2.1')
  expect(limiter.enter('192.0.2.1')).toBe(true)
})

test('an address may open a number of connections in a minute', () => {
  const { limiter, advance } = createTestLimiter()
  const visit = () => {
    const isIn = limiter.enter('192.0.2.1')
    if (isIn) limiter.leave('192.0.2.1')
    return isIn
  }
  expect([visit(), visit(), visit(), visit(), visit()]).toEqual([true, true, true, true, false])
  advance(60_000)
  expect(visit()).toBe(true)
})

test('the addresses of one IPv6 network count as one', () => {
  const { limiter } = createTestLimiter()
  expect([limiter.enter('2001:db8::1'), limiter.enter('2001:db8::2'), limiter.enter('2001:db8::3')]).toEqual([
    true,
    true,
    false,
  ])
  expect(limiter.enter('2001:db8:0:1::1')).toBe(true)
})
