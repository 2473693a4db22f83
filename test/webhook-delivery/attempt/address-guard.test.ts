import { expect, test } from 'vitest'
import { type AddressPolicy, faultOfUrl } from '../../../server/webhook-delivery/attempt/address-guard.ts'

const strict: AddressPolicy = { allowHttp: false, allowPrivateNetworks: false }
const open: AddressPolicy = { allowHttp: true, allowPrivateNetworks: true }

test.each([
  'https://example.com/hooks',
  'https://example.com:8443/hooks?tenant=1',
  'https://bücher.example/',
  'https://example.com./',
  'https://8.8.8.8/',
  'https://[2606:4700:4700::1111]/',
  'https://localhost.example.com/',
  'https://notlocalhost/',
  'HTTPS://EXAMPLE.COM/',
])('the URL of a webhook may be %s', (url) => {
  expect(faultOfUrl(url, strict)).toBeNull()
})

test.each([
  'https://127.0.0.1/',
  'https://127.1/',
  'https://2130706433/',
  'https://0x7f000001/',
  'https://0x7f.0.0.1/',
  'https://017700000001/',
  'https://0177.0.0.01/',
  'https://127.0.0.1./',
  'https://127.0.0.1:8443/',
  'https://%31%32%37.0.0.1/',
  'https://１２７.0.0.1/',
  'https://127。0。0。1/',
  'https://10.1.2.3/',
  'https://0/',
  'https://0.0.0.0/',
  'https://[::]/',
  'https://[::1]/',
  'https://[0:0:0:0:0:0:0:1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::ffff:7f00:1]/',
  'https://[::127.0.0.1]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[64:ff9b:1::7f00:1]/',
  'https://[2002:7f00:1::]/',
  'https://[fd00::1]/',
  'https://localhost/',
  'https://LOCALHOST/',
  'https://localhost./',
  'https://api.localhost/',
  'https://api.localhost./',
  'https:127.0.0.1/',
  'https:\\\\127.0.0.1/',
])('the URL of a webhook must lead to a public address, unlike %s', (url) => {
  expect(faultOfUrl(url, strict)).toMatch(/^must lead to a public address/)
  expect(faultOfUrl(url, open)).toBeNull()
})

test.each([
  'https://169.254.169.254/latest/meta-data/',
  'https://169.254.1.1/',
  'https://2852039166/',
  'https://0xa9fea9fe/',
  'https://0251.0376.0251.0376/',
  'https://[::ffff:169.254.169.254]/',
  'https://[::169.254.169.254]/',
  'https://[::ffff:0:169.254.169.254]/',
  'https://[64:ff9b::a9fe:a9fe]/',
  'https://[64:ff9b:1::a9fe:a9fe]/',
  'https://[2002:a9fe:a9fe::]/',
  'https://[fe80::1]/',
  'https://[febf::1]/',
  'https://[fd00:ec2::254]/',
  // Credentials of Amazon EKS Pod Identity.
  'https://[fd00:ec2::23]/',
  'https://[fd20:ce::254]/',
  'https://168.63.129.16/',
  'https://100.100.100.200/',
  'https://192.0.0.192/',
  'https://metadata.google.internal/',
  'https://METADATA.google.internal./computeMetadata/v1/',
  'https://metadata/',
  'https://instance-data/',
])(
  'the URL of a webhook never leads to a link-local address or the metadata of a cloud, whatever is allowed: %s',
  (url) => {
    expect(faultOfUrl(url, strict)).toMatch(/^must not lead to a link-local address/)
    expect(faultOfUrl(url, open)).toMatch(/^must not lead to a link-local address/)
  },
)

test.each(['https://user@example.com/', 'https://user:password@example.com/', 'https://:password@example.com/'])(
  'the URL of a webhook carries no credentials, unlike %s',
  (url) => {
    expect(faultOfUrl(url, strict)).toBe('must not carry a user name or password')
    expect(faultOfUrl(url, open)).toBe('must not carry a user name or password')
  },
)

test.each(['', 'example.com', '/hooks', 'https://', 'https://[::1', 'https://[fe80::1%25eth0]/', 'https://1.2.3.4.5/'])(
  'the URL of a webhook is absolute and whole, unlike %o',
  (url) => {
    expect(faultOfUrl(url, open)).toMatch(/^must be an absolute URL/)
  },
)

test('the URL of a webhook begins with https, or with http where that is allowed, and with nothing else', () => {
  expect(faultOfUrl('http://example.com/', strict)).toMatch(/^must begin with https:/)
  expect(faultOfUrl('http://example.com/', { ...strict, allowHttp: true })).toBeNull()
  for (const url of ['ftp://example.com/', 'file:///etc/passwd', 'data:,x', 'javascript:0', 'ws://example.com/']) {
    expect(faultOfUrl(url, open)).toMatch(/^must begin with https:/)
  }
})
