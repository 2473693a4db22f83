import { expect, test } from 'vitest'
import { clientAddressOf } from '../../server/http/client-address.ts'

test.each([
  ['an IPv4 address', '192.0.2.7', '192.0.2.7'],
  ['an IPv4 address with a port', '192.0.2.7:51234', '192.0.2.7'],
  ['an IPv6 address', '2001:DB8:0:0::1', '2001:db8::1'],
  ['an IPv6 address in brackets', '[2001:db8::1]', '2001:db8::1'],
  ['an IPv6 address with a port', '[2001:db8::1]:443', '2001:db8::1'],
  ['an IPv6 address with a zone', 'fe80::1%eth0', 'fe80::1'],
  ['an IPv4-mapped IPv6 address', '::ffff:192.0.2.7', '192.0.2.7'],
  ['an IPv4-mapped IPv6 address in hexadecimal', '::ffff:c000:207', '192.0.2.7'],
  ['an IPv4 address with a number in octal', '192.0.2.07', null],
  ['an IPv4-mapped IPv6 address with a number in octal', '::ffff:192.0.2.07', null],
  ['an IPv4-mapped IPv6 address with a port', '[::ffff:192.0.2.7]:443', '192.0.2.7'],
  ['an IPv4 address in brackets', '[192.0.2.7]', '192.0.2.7'],
  ['a port without an end', '192.0.2.7:512345', null],
  ['a name', 'localhost:80', null],
  ['an obfuscated identifier of RFC 7239', '_hidden', null],
  ['nothing', '', null],
  ['a client that has disconnected', undefined, null],
])('the address of a client that is given as %s', (_, given, address) => {
  expect(clientAddressOf(given)).toBe(address)
})
