import { expect, test } from 'vitest'
import { type AddressRange, isCovered, isWithin, readRange, textOf } from '../../server/api-keys/address-ranges.ts'

function range(text: string): AddressRange {
  const read = readRange(text)
  return typeof read === 'string' ? expect.fail(`${text} ${read}`) : read
}

test.each([
  ['203.0.113.7', '203.0.113.7'],
  ['203.0.113.7/32', '203.0.113.7'],
  ['203.0.113.0/24', '203.0.113.0/24'],
  ['203.0.113.128/25', '203.0.113.128/25'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
  ['2001:db8::1/128', '2001:db8::1'],
  ['2001:db8::/32', '2001:db8::/32'],
  ['2001:db8:8000::/33', '2001:db8:8000::/33'],
  ['::/0', '::/0'],
  ['::ffff:203.0.113.7', '203.0.113.7'],
  ['::ffff:cb00:7107', '203.0.113.7'],
  ['::ffff:203.0.113.0/120', '203.0.113.0/24'],
  ['::ffff:0:0/96', '0.0.0.0/0'],
])('%s is read as %s', (given, canonical) => {
  expect(textOf(range(given))).toBe(canonical)
})

test.each([
  ['', /IP address/],
  ['1', /IP address/],
  ['127.1', /IP address/],
  ['010.0.0.1', /IP address/],
  ['0x7f.0.0.1', /IP address/],
  ['256.0.0.1', /IP address/],
  ['203.0.113', /IP address/],
  ['203.0.113.7/', /IP address/],
  ['203.0.113.0/024', /IP address/],
  ['203.0.113.0/+24', /IP address/],
  ['203.0.113.0/24/24', /IP address/],
  ['203.0.113.0/255.255.255.0', /IP address/],
  ['fe80::1%eth0', /IP address/],
  ['::g', /IP address/],
  ['example.com', /IP address/],
  ['203.0.113.0/33', /at most 32 bits/],
  ['2001:db8::/129', /at most 128 bits/],
  ['203.0.113.7/24', /begins at 203\.0\.113\.0\/24/],
  ['2001:db8::1/64', /begins at 2001:db8::\/64/],
  ['::ffff:203.0.113.7/120', /begins at 203\.0\.113\.0\/24/],
])('%j is refused', (text, fault) => {
  expect(readRange(text)).toMatch(fault)
})

test.each([
  ['203.0.113.7', '203.0.113.7', true],
  ['203.0.113.7', '203.0.113.8', false],
  ['203.0.113.128/25', '203.0.113.128', true],
  ['203.0.113.128/25', '203.0.113.255', true],
  ['203.0.113.128/25', '203.0.113.127', false],
  ['0.0.0.0/0', '198.51.100.1', true],
  ['0.0.0.0/0', '2001:db8::1', false],
  ['::/0', '2001:db8::1', true],
  ['::/0', '198.51.100.1', false],
  ['2001:db8:8000::/33', '2001:db8:ffff::1', true],
  ['2001:db8:8000::/33', '2001:db8:7fff::1', false],
  // As a server that listens on :: sees clients of IPv4.
  ['203.0.113.0/24', '::ffff:203.0.113.9', true],
  ['203.0.113.0/24', '::ffff:203.0.114.9', false],
  // Not mapped, but compatible (RFC 4291 §2.5.5.1) and NAT64: other addresses.
  ['203.0.113.0/24', '::203.0.113.9', false],
  ['203.0.113.0/24', '64:ff9b::203.0.113.9', false],
  ['0.0.0.0/0', 'not an address', false],
  ['0.0.0.0/0', '', false],
  ['::/0', 'fe80::1%eth0', false],
])('an address lies in %s: %s → %s', (within, address, expected) => {
  expect(isWithin([range('192.0.2.1'), range(within)], address)).toBe(expected)
})

test.each([
  ['10.0.0.0/8', '10.1.0.0/16', true],
  ['10.0.0.0/8', '10.0.0.0/8', true],
  ['10.1.0.0/16', '10.0.0.0/8', false],
  ['10.0.0.0/8', '11.0.0.0/16', false],
  ['0.0.0.0/0', '::/0', false],
  ['10.0.0.0/8', '::ffff:10.2.3.4', true],
])('%s covers %s: %s', (outer, inner, expected) => {
  expect(isCovered([range(outer)], range(inner))).toBe(expected)
})
