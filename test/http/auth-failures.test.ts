import { beforeEach, expect, test } from 'vitest'
import { type AuthFailures, createAuthFailures } from '../../server/http/auth-failures.ts'

const clock = { at: 0, now: () => new Date(clock.at) }
let failures: AuthFailures

beforeEach(() => {
  clock.at = Date.parse('2026-01-01T00:00:15Z')
  failures = createAuthFailures({ clock, perMinute: 2 })
})

test('an address may fail as often as the limit in a minute of the clock', () => {
  expect([1, 2, 3].map(() => failures.count('192.0.2.1'))).toEqual([0, 0, 45_000])
  expect(failures.count('192.0.2.2')).toBe(0)
  clock.at += 44_999
  expect(failures.count('192.0.2.1')).toBe(1)
  clock.at += 1
  expect(failures.count('192.0.2.1')).toBe(0)
})

test.each([
  ['the same /64 of IPv6', '2001:db8:1:2::1', '2001:db8:1:2:ffff::9', true],
  ['the next /64', '2001:db8:1:2::1', '2001:db8:1:3::1', false],
  ['an IPv4 address and the same mapped into IPv6', '192.0.2.7', '::ffff:192.0.2.7', true],
  ['two IPv4 addresses mapped into IPv6', '::ffff:192.0.2.7', '::ffff:192.0.2.8', false],
  ['two IPv4 addresses of one network', '192.0.2.7', '192.0.2.8', false],
  ['an address with a zone and one without', 'fe80::1%eth0', 'fe80::2', true],
  ['an IPv4 address with a port and another', '192.0.2.7:51234', '192.0.2.7', true],
  ['two IPv4 addresses with ports', '192.0.2.7:51234', '192.0.2.8:51234', false],
  ['an IPv6 address with a port and one without', '[2001:db8::1]:443', '2001:db8::2', true],
  ['two things that are no addresses', '', 'x'.repeat(1_000), true],
])('one client or two: %s', (_, one, other, same) => {
  failures.count(one)
  failures.count(one)
  expect(failures.count(other) > 0).toBe(same)
})
