import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mailboxForm } from '../../contract/fields.ts'
import { addressKey } from '../../server/message/address.ts'
import { readMailbox, writeMailbox } from '../../server/message/mailbox.ts'

test.each([
  ['ada@example.com', null, 'ada@example.com', 'example.com'],
  ['  ada@example.com ', null, 'ada@example.com', 'example.com'],
  ['<ada@example.com>', null, 'ada@example.com', 'example.com'],
  ['Ada <ada@example.com>', 'Ada', 'ada@example.com', 'example.com'],
  ['Ada<ada@example.com>', 'Ada', 'ada@example.com', 'example.com'],
  ['Dr. Ada  K. Lovelace <ada@example.com>', 'Dr. Ada K. Lovelace', 'ada@example.com', 'example.com'],
  ['"Lovelace, Ada" <ada@example.com>', 'Lovelace, Ada', 'ada@example.com', 'example.com'],
  ['"The \\"Countess\\" \\\\ Ada" <ada@example.com>', 'The "Countess" \\ Ada', 'ada@example.com', 'example.com'],
  ['"" <ada@example.com>', null, 'ada@example.com', 'example.com'],
  ['"ada@evil.example" <ada@example.com>', 'ada@evil.example', 'ada@example.com', 'example.com'],
  ["o'hara+news{x}=1/2@example.com", null, "o'hara+news{x}=1/2@example.com", 'example.com'],
  ['"ada lovelace"@example.com', null, '"ada lovelace"@example.com', 'example.com'],
  ['"ada@home"@example.com', null, '"ada@home"@example.com', 'example.com'],
  ['"ada"@example.com', null, 'ada@example.com', 'example.com'],
  ['"a\\da"@example.com', null, 'ada@example.com', 'example.com'],
  ['Ada@EXAMPLE.Com', null, 'Ada@EXAMPLE.Com', 'example.com'],
  ['ada@bücher.example', null, 'ada@bücher.example', 'xn--bcher-kva.example'],
  ['ada@XN--BCHER-KVA.example', null, 'ada@XN--BCHER-KVA.example', 'xn--bcher-kva.example'],
  ['用户@例え.jp', null, '用户@例え.jp', 'xn--r8jz45g.jp'],
  ['Jörg Müller <jörg@example.com>', 'Jörg Müller', 'jörg@example.com', 'example.com'],
  ['😀 <ada@example.com>', '😀', 'ada@example.com', 'example.com'],
])('a mailbox is read: %s', (text, name, address, domain) => {
  expect(readMailbox(text)).toEqual({ mailbox: { name, address, domain }, fault: null })
  expect(text).toMatch(mailboxForm)
})

const long = 'x'.repeat(64)

test.each([
  ['', 'must be an address such as'],
  ['ada', 'must be an address such as'],
  ['@example.com', 'must have something before the @'],
  ['""@example.com', 'must have something before the @'],
  ['ada@', 'must have a domain name'],
  ['ada@example', 'must have a domain name'],
  ['ada@example.com.', 'must have a domain name'],
  ['ada@.example.com', 'must have a domain name'],
  ['ada@-example.com', 'must have a domain name'],
  ['ada@exa_mple.com', 'must have a domain name'],
  ['ada@exa%41mple.com', 'must have a domain name'],
  ['ada@example.com:25', 'must have a domain name'],
  ['ada@example.com/x', 'must have a domain name'],
  ['ada@example.com@example.org', 'must have a domain name'],
  ['ada@127.0.0.1', 'must have a domain name'],
  ['ada@xn--a.example', 'must have a domain name'],
  ['ada@exam\u2025ple.com', 'must have a domain name'],
  ['ada@[127.0.0.1]', 'not an address literal'],
  ['ada@[IPv6:::1]', 'not an address literal'],
  ['.ada@example.com', 'must have no dot'],
  ['ada.@example.com', 'must have no dot'],
  ['a..da@example.com', 'must have no dot'],
  ['ada lovelace@example.com', 'only in double quotes'],
  ['ada"x"@example.com', 'only in double quotes'],
  ['ada\u00a0x@example.com', 'only in double quotes'],
  ['ada(work)@example.com', 'must not contain comments'],
  ['ada@example.com (work)', 'must not contain comments'],
  ['(work) Ada <ada@example.com>', 'must not contain comments'],
  ['ada@example.com, bob@example.com', 'must be one address'],
  ['ada@example.com; bob@example.com', 'must be one address'],
  ['Friends: ada@example.com, bob@example.com;', 'must be one address'],
  ['Lovelace, Ada <ada@example.com>', 'must be one address'],
  ['Friends: <ada@example.com>', 'must be one address'],
  ['<@relay.example:ada@example.com>', 'must not contain a route'],
  ['ada@example.com <bob@example.com>', 'put the name in double quotes'],
  ['Ada [Sales] <ada@example.com>', 'put the name in double quotes'],
  ['"Ada <ada@example.com>', 'quotation marks do not end'],
  ['Ada <ada@example.com', 'one pair of angle brackets'],
  ['Ada <ada@example.com> x', 'one pair of angle brackets'],
  ['Ada <<ada@example.com>>', 'one pair of angle brackets'],
  ['<>', 'must be an address such as'],
  ['Ada <>', 'must be an address such as'],
  ['ada@example.com\r\nBcc: eve@example.com', 'must not contain line breaks'],
  ['Ada\n <ada@example.com>', 'must not contain line breaks'],
  ['"Ada\u0000" <ada@example.com>', 'must not contain line breaks'],
  ['ada\u0085@example.com', 'must not contain line breaks'],
  ['ada\u2028@example.com', 'must not contain line breaks'],
  ['ada\ud800@example.com', 'must not contain line breaks'],
  [`${long}x@example.com`, 'at most 64 octets before the @'],
  [`${'é'.repeat(33)}@example.com`, 'at most 64 octets before the @'],
  [`${long}@${`${'d'.repeat(60)}.`.repeat(3)}example.com`, 'at most 254 octets'],
  [`ada@${'d'.repeat(64)}.com`, 'must have a domain name'],
])('a mailbox is refused: %j', (text, fault) => {
  expect(readMailbox(text)).toEqual({ mailbox: null, fault: expect.stringContaining(fault) })
})

/** Names with everything in them that a header must not take for its own. */
const names = fc
  .string({
    unit: fc.oneof(
      fc.constantFrom(...'"\\<>@,;:()[]. \'='),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
    ),
  })
  .filter((name) => name.trim() !== '' && !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(name))
const domains = fc
  .oneof(fc.domain(), fc.constantFrom('bücher.example', '例え.jp', 'Example.COM'))
  .filter((name) => name.length < 180)
const quotable = fc.string({ minLength: 1, maxLength: 20 }).map((text) => `"${text.replaceAll(/["\\]/g, '\\$&')}"`)
const locals = fc.oneof(
  fc.emailAddress().map((address) => address.slice(0, address.lastIndexOf('@'))),
  quotable,
  fc.constantFrom('jörg', '用户', 'ada+news'),
)

test('an address is read as it is, and written so that it is read the same', () => {
  fc.assert(
    fc.property(locals, domains, (local, domain) => {
      const { mailbox, fault } = readMailbox(`${local}@${domain}`)
      expect(fault).toBeNull()
      if (mailbox === null) return
      expect(mailbox.address.endsWith(`@${domain}`)).toBe(true)
      expect(readMailbox(writeMailbox(mailbox))).toEqual({ mailbox, fault: null })
    }),
  )
})

test('a name comes back whole, however it has to be written', () => {
  fc.assert(
    fc.property(names, locals, domains, (name, local, domain) => {
      const { address } = readMailbox(`${local}@${domain}`).mailbox ?? { address: '' }
      const written = writeMailbox({ name, address })
      expect(readMailbox(written).mailbox).toMatchObject({ name, address })
    }),
  )
})

test('nothing that is taken could break out of a header or a command', () => {
  const text = fc.string({ unit: fc.constantFrom(...'ab@.<>"\\ ,;:()[]\r\n\0\t', 'é', '\u2028') })
  fc.assert(
    fc.property(text, text, (local, name) => {
      for (const given of [local, `${local}@b.example`, `${name}<${local}@b.example>`]) {
        const { mailbox } = readMailbox(given)
        if (mailbox === null) continue
        expect(writeMailbox(mailbox)).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u)
        expect(mailbox.domain).toMatch(/^[a-z0-9.-]+$/)
        const outside = mailbox.address.replace(/^"(?:[^"\\]|\\.)*"/, 'q')
        expect(outside).toMatch(/^[^\s<>()[\]\\,;:@"]+@[^\s<>()[\]\\,;:@"]+$/)
      }
    }),
    { numRuns: 1_000 },
  )
})

describe('two addresses are the same', () => {
  test.each([
    ['Ada@Example.com', 'ada@example.COM'],
    ['ada@bücher.example', 'ada@xn--bcher-kva.example'],
    ['ada@BÜCHER.example', 'ADA@Xn--Bcher-Kva.Example'],
    ['j\u00f6rg@example.com', 'jo\u0308rg@example.com'],
  ])('%s and %s are the same address', (one, other) => {
    expect(addressKey(one)).toBe(addressKey(other))
  })

  test.each([
    ['ada@example.com', 'a.da@example.com'],
    ['ada@example.com', 'ada+news@example.com'],
    ['ada@example.com', 'ada@example.org'],
    ['jörg@example.com', 'jorg@example.com'],
  ])('%s and %s are not the same address', (one, other) => {
    expect(addressKey(one)).not.toBe(addressKey(other))
  })
})

const marks = fc.constantFrom(
  ...'ab0@.<>"\\ ,;:()[]-',
  '\t',
  '\r\n',
  '\u00a0',
  '\u3000',
  '\ufeff',
  '\u2028',
  'é',
  '例',
  '。',
  '😀',
)
const text = fc.oneof(fc.string({ unit: marks }), fc.string({ unit: 'binary' }))

test('the published form of a mailbox is that of everything that is read', () => {
  fc.assert(
    fc.property(text, text, locals, domains, (before, after, local, domain) => {
      const address = `${local}@${domain}`
      const given = [
        before + address + after,
        `${before}<${address}>${after}`,
        `${before}@${domain}`,
        `a@b${after}.example`,
      ]
      for (const one of given) {
        if (readMailbox(one).fault === null) expect(one).toMatch(mailboxForm)
      }
    }),
    { numRuns: 2_000 },
  )
})

test('the published form of a mailbox is broken by nearly everything that is refused', () => {
  const refused = [
    'ada',
    '@a.example',
    'a@b',
    'a..b@c.example',
    'a b@c.example',
    'a@b.example, c@d.example',
    'a@[127.0.0.1]',
  ]
  for (const one of refused) expect(one).not.toMatch(mailboxForm)
})

test('the published form of a mailbox is tried in no time on the longest text there may be', () => {
  for (const one of ['a', '"', '"\\', '. ', 'a.', '<', 'a@', 'é', '\t', '"a"@b.']) {
    expect(one.repeat(500).slice(0, 500)).not.toMatch(mailboxForm)
  }
})
