import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isPublicAddress } from '../../server/network/public-address.ts'

test.each([
  '1.1.1.1',
  '8.8.8.8',
  '99.255.255.255',
  '100.128.0.1',
  '126.255.255.255',
  '128.0.0.1',
  '172.15.255.255',
  '172.32.0.1',
  '192.0.1.1',
  '192.167.255.255',
  '192.169.0.1',
  '198.17.255.255',
  '198.20.0.1',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450:4001:82a::200e',
  '::ffff:8.8.8.8',
  '64:ff9b::8.8.8.8',
  '2002:808:808::1',
])('a public address is %s', (address) => {
  expect(isPublicAddress(address)).toBe(true)
})

// The blocks of the IANA special-purpose registries, by their first and last addresses.
test.each([
  ['this network', ['0.0.0.0', '0.255.255.255']],
  ['private use', ['10.0.0.0', '10.255.255.255', '172.16.0.0', '172.31.255.255', '192.168.0.0', '192.168.255.255']],
  ['shared address space', ['100.64.0.0', '100.127.255.255']],
  ['loopback', ['127.0.0.0', '127.0.0.1', '127.255.255.255', '::1']],
  ['link-local', ['169.254.0.0', '169.254.169.254', '169.254.255.255', 'fe80::', 'febf:ffff::1', 'fe80::1%eth0']],
  ['IETF protocol assignments', ['192.0.0.0', '192.0.0.8', '192.0.0.9', '192.0.0.170', '192.0.0.255']],
  ['documentation, IPv4', ['192.0.2.1', '198.51.100.1', '203.0.113.1']],
  ['documentation, IPv6', ['2001:db8::1', '2001:db8:ffff:ffff::', '3fff::1', '3fff:fff:ffff::1']],
  ['AS112', ['192.31.196.1', '192.175.48.1', '2001:4:112::1', '2620:4f:8000::1']],
  ['AMT', ['192.52.193.1', '2001:3::1']],
  ['the old relays of 6to4', ['192.88.99.0', '192.88.99.255']],
  ['benchmarks', ['198.18.0.0', '198.19.255.255', '2001:2::1']],
  ['multicast', ['224.0.0.1', '239.255.255.255', 'ff02::1', 'ff0e::1']],
  ['reserved and broadcast', ['240.0.0.1', '255.255.255.255']],
  ['unspecified', ['::']],
  ['mapped and private', ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', '::ffff:169.254.169.254']],
  ['compatible', ['::127.0.0.1', '::7f00:1', '::808:808']],
  ['translated', ['::ffff:0:127.0.0.1', '::ffff:0:8.8.8.8']],
  ['NAT64 of a private address', ['64:ff9b::127.0.0.1', '64:ff9b::a00:1', '64:ff9b::192.168.0.1']],
  ['local NAT64', ['64:ff9b:1::8.8.8.8', '64:ff9b:1:ffff::1']],
  ['discard only', ['100::1', '100:0:0:1::1']],
  ['6to4 of a private address', ['2002:7f00:1::', '2002:a00:1::1', '2002:c0a8:1::1', '2002:a9fe:a9fe::']],
  ['Teredo', ['2001::1', '2001:0:4136:e378:8000:63bf:3fff:fdd2']],
  ['ORCHID and drone tags', ['2001:10::1', '2001:20::1', '2001:30::1']],
  ['segment routing', ['5f00::1']],
  ['unique local', ['fc00::1', 'fd00:ec2::254', 'fdff::1']],
  ['site-local', ['fec0::1', 'feff::1']],
  ['not allocated', ['4000::1', '8000::1', 'e000::1']],
  ['the platform of a cloud', ['168.63.129.16', '100.100.100.200', '192.0.0.192', '::ffff:168.63.129.16']],
  ['not an address', ['', 'localhost', '256.1.1.1', '1.2.3.4.5', ':::', '1.2.3.4:80', '10.0.0.0/8']],
])('a public address is none of %s', (_name, addresses) => {
  expect(addresses.filter((address) => isPublicAddress(address))).toEqual([])
})

test('an IPv6 address that leads to an IPv4 address is as public as that', () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => {
      const [a, b, c, d] = address.split('.').map((part) => Number(part).toString(16).padStart(2, '0'))
      const embedded = [`::ffff:${a}${b}:${c}${d}`, `64:ff9b::${a}${b}:${c}${d}`, `2002:${a}${b}:${c}${d}::1`]
      const isPublic = isPublicAddress(address)
      expect(embedded.map((text) => isPublicAddress(text))).toEqual([isPublic, isPublic, isPublic])
    }),
  )
})
