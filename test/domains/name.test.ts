import { expect, test } from 'vitest'
import { readDomainName } from '../../server/domains/name.ts'

test.each([
  ['example.com', 'example.com'],
  ['Mail.Example.COM', 'mail.example.com'],
  ['example.com.', 'example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['BÜCHER.example', 'xn--bcher-kva.example'],
  ['faß.de', 'xn--fa-hia.de'],
  ['例え。テスト。', 'xn--r8jz45g.xn--zckzah'],
  ['shop.test', 'shop.test'],
  [`${'a'.repeat(63)}.com`, `${'a'.repeat(63)}.com`],
])('%s is kept as %s', (text, name) => {
  expect(readDomainName(text)).toEqual({ name, fault: null })
})

const noName = 'must be a domain name such as example.com'

test.each([
  ['localhost', noName],
  ['', noName],
  ['.', noName],
  ['example..com', noName],
  ['.example.com', noName],
  ['-a.example.com', noName],
  ['a-.example.com', noName],
  ['_dmarc.example.com', noName],
  ['a b.com', noName],
  ['ada@example.com', noName],
  ['https://example.com', noName],
  ['example.com/path', noName],
  ['example.com:25', noName],
  ['ex%61mple.com', noName],
  ['example.com\u0000', noName],
  ['xn--a.com', noName],
  ['example.123', noName],
  [`${'a'.repeat(64)}.com`, noName],
  ['192.0.2.1', 'must be a domain name, not an address'],
  ['192.0.2.1.', 'must be a domain name, not an address'],
  ['0x7f.1', 'must be a domain name, not an address'],
  ['[::1]', noName],
  ['printer.local', 'must not end in .local, which is not in the public DNS'],
  ['Mail.INTERNAL', 'must not end in .internal, which is not in the public DNS'],
  ['1.0.0.127.in-addr.arpa', 'must not end in .arpa, which is not in the public DNS'],
  [`${'ü'.repeat(50)}.`.repeat(4).concat('com'), 'must be at most 200 characters as A-labels (xn--…)'],
])('%j is refused', (text, fault) => {
  expect(readDomainName(text)).toEqual({ name: null, fault })
})
