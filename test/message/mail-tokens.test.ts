import fc from 'fast-check'
import { expect, test } from 'vitest'
import { idPattern } from '../../contract/ids.ts'
import { createMailTokens } from '../../server/message/mail-tokens.ts'
import { deriveKey } from '../../server/secrets/secret-box.ts'
import { idOfUuid, uuidOf } from '../../server/shared/ids.ts'
import { tokens } from '../support/worlds/message.ts'

const other = createMailTokens(Buffer.alloc(32, 8))

const emailIds = fc.uuid().map((uuid) => idOfUuid('email', uuid))
const positions = fc.nat({ max: 65_535 })
const accountIds = fc.uuid().map((uuid) => idOfUuid('account', uuid))
const addresses = fc.oneof(fc.emailAddress(), fc.constantFrom('jürgen@münchen.example', '"a b"@example.com'))
const topicIds = fc.uuid().map((uuid) => idOfUuid('topic', uuid))
const leaving = fc.record(
  { emailId: emailIds, position: positions, accountId: accountIds, address: addresses, topicId: topicIds },
  { requiredKeys: ['emailId', 'position', 'accountId', 'address'] },
)
const recipients = fc.record({ emailId: emailIds, position: positions })
const copies = fc.record({ emailId: emailIds, position: fc.option(positions) })
const links = fc.record({
  emailId: emailIds,
  position: positions,
  link: fc.webUrl({ withQueryParameters: true, withFragments: true }),
})

/** A token with one character changed to another, put in or taken out. */
function tampered(token: string, alphabet: string): fc.Arbitrary<string> {
  return fc
    .tuple(fc.nat({ max: token.length - 1 }), fc.constantFrom(...alphabet), fc.constantFrom(0, 1))
    .map(([index, character, taken]) => token.slice(0, index) + character + token.slice(index + taken))
    .filter((changed) => changed !== token)
}

test('the return path tells of its email and whose copy it is, in any letter case and at any host, and fits into an address', () => {
  fc.assert(
    fc.property(copies, fc.infiniteStream(fc.boolean()), (copy, upper) => {
      const address = tokens.returnPath(copy, 'send.example.com')
      const shouted = [...address].map((char) => (upper.next().value ? char.toUpperCase() : char)).join('')

      expect(address).toMatch(/^b\.[a-z0-9]{42,46}@send\.example\.com$/)
      expect(tokens.readReturnPath(shouted)).toEqual(copy)
      expect(tokens.readReturnPath(address.replace('send.example.com', 'elsewhere.example'))).toEqual(copy)
      expect(tokens.readCopy(tokens.copy(copy).toUpperCase())).toEqual(copy)
      expect(other.readReturnPath(address)).toBeNull()
    }),
  )
})

test('the return path that was tampered with tells nothing', () => {
  const changed = copies.chain((copy) => tampered(tokens.copy(copy), '0123456789abcdefghjkmnpqrstvwxyzilou-._@ '))
  fc.assert(
    fc.property(changed, (token) => {
      expect(tokens.readCopy(token)).toBeNull()
      expect(tokens.readReturnPath(`b.${token}@send.example.com`)).toBeNull()
    }),
    { numRuns: 500 },
  )
})

test('the return path of one copy cannot be made into that of all, or of another', () => {
  const emailId = idOfUuid('email', '018f0000-0000-7000-8000-000000000000')
  const own = tokens.copy({ emailId, position: 1 })
  const ofAll = tokens.copy({ emailId, position: null })
  expect(own).not.toContain(ofAll.slice(26))
  for (const forged of [own.slice(0, 26) + own.slice(30), own.replace(/^(.{26}).{4}/, '$10002')]) {
    expect(tokens.readCopy(forged)).toBeNull()
  }
})

test('the return path that was made before copies had positions still tells of its email', () => {
  const address = 'b.01hw000000e008000000000000sbgr8m34rnf10p1y@send.example.com'
  expect(tokens.readReturnPath(address)).toEqual({
    emailId: 'email_01hw000000e008000000000000',
    position: null,
  })
})

test.each([
  '',
  '@',
  'b.@x',
  'x',
  'postmaster@send.example.com',
  'b.email_01jqz4x7m8e5v9t2k6r3w0y1ab@x',
  'é'.repeat(42),
])('the return path is not %j', (address) => {
  expect(tokens.readReturnPath(address)).toBeNull()
  expect(tokens.readCopy(address)).toBeNull()
})

test('the token of a link tells what it was made of', () => {
  fc.assert(
    fc.property(links, ({ emailId, position, link }) => {
      expect(emailId).toMatch(idPattern('email'))
      expect(tokens.readClick(tokens.click({ emailId, position, link }))).toEqual({ emailId, position, link })
      expect(tokens.readPixel(tokens.pixel({ emailId, position }))).toEqual({ emailId, position })
    }),
  )
  fc.assert(
    fc.property(leaving, (from) => {
      expect(tokens.readUnsubscribe(tokens.unsubscribe(from))).toEqual(from)
    }),
  )
})

test('the token of a link is of one purpose and of one key', () => {
  fc.assert(
    fc.property(recipients, leaving, (recipient, from) => {
      const pixel = tokens.pixel(recipient)
      const unsubscribe = tokens.unsubscribe(from)
      const click = tokens.click({ ...recipient, link: '' })

      expect([tokens.readUnsubscribe(pixel), tokens.readClick(pixel), other.readPixel(pixel)]).toEqual([
        null,
        null,
        null,
      ])
      expect([tokens.readPixel(unsubscribe), tokens.readClick(unsubscribe)]).toEqual([null, null])
      expect([tokens.readPixel(click), tokens.readUnsubscribe(click), other.readClick(click)]).toEqual([
        null,
        null,
        null,
      ])
    }),
  )
})

test('the token of a link that was tampered with tells nothing, a changed letter case included', () => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/= .é'
  const changed = links.chain((link) => tampered(tokens.click(link), alphabet))
  fc.assert(
    fc.property(changed, (token) => {
      expect(tokens.readClick(token)).toBeNull()
    }),
    { numRuns: 1_000 },
  )
  const token = tokens.pixel({ emailId: idOfUuid('email', '018f0000-0000-7000-8000-000000000000'), position: 1 })
  expect(tokens.readPixel(token.toUpperCase())).toBeNull()
  expect(tokens.readPixel(`${token}=`)).toBeNull()
  expect(tokens.readPixel('')).toBeNull()
})

const recipient = { emailId: 'email_01jqz4x7m8e5v9t2k6r3w0y1ab', position: 3 }
const link = 'https://shop.example/?email=ada@example.org'
const from = { ...recipient, accountId: 'acc_01jqz4x7m8e5v9t2k6r3w0y1ab', address: 'ada@example.org' }

test.each([
  ['pixel', tokens.pixel(recipient)],
  ['click', tokens.click({ ...recipient, link })],
  ['unsubscribe', tokens.unsubscribe(from)],
  ['unsubscribe from a topic', tokens.unsubscribe({ ...from, topicId: 'top_01jqz4x7m8e5v9t2k6r3w0y1ab' })],
])('what stands in the token of a link cannot be read: %s', (_, token) => {
  const bytes = Buffer.from(token, 'base64url')
  const email = Buffer.from(uuidOf(recipient.emailId).replaceAll('-', ''), 'hex')

  for (const part of ['ada', 'example', 'https', email]) expect(bytes.includes(part)).toBe(false)
})

test('what stands in the token of a link makes it 16 bytes longer, and of two that differ in one letter nothing is alike', () => {
  const [one, other] = ['ada@example.org', 'ade@example.org'].map((address) =>
    Buffer.from(tokens.unsubscribe({ ...from, address }), 'base64url'),
  )

  expect(Buffer.from(tokens.pixel(recipient), 'base64url')).toHaveLength(16 + 18)
  expect(Buffer.from(tokens.click({ ...recipient, link }), 'base64url')).toHaveLength(16 + 18 + link.length)
  expect(one).toHaveLength(16 + 34 + from.address.length)
  expect(one?.filter((byte, index) => byte === other?.[index]).length).toBeLessThan(10)
})

test('what stands in the token of a link is still read where the token was made before tokens were encrypted', () => {
  const pixel = 'ZdA5VbZCgAF52XXGdfRsvQGV_k6eiHF2nQpmwPgPBUsAAw'
  const click =
    'Fy7dTli4Vnijn6xmERsbagGV_k6eiHF2nQpmwPgPBUsAA2h0dHBzOi8vc2hvcC5leGFtcGxlLz9lbWFpbD1hZGFAZXhhbXBsZS5vcmc'
  const unsubscribe = 'qegARS89COCCsGM9g42sKQGV_k6eiHF2nQpmwPgPBUsAAwGV_k6eiHF2nQpmwPgPBUthZGFAZXhhbXBsZS5vcmc'

  expect(tokens.readPixel(pixel)).toEqual(recipient)
  expect(tokens.readClick(click)).toEqual({ ...recipient, link })
  expect(tokens.readUnsubscribe(unsubscribe)).toEqual(from)
  expect([tokens.readClick(pixel), tokens.readPixel(unsubscribe), other.readPixel(pixel)]).toEqual([null, null, null])
  expect(tokens.readUnsubscribe(unsubscribe.replace('ZGFA', 'ZWFA'))).toBeNull()
})

test('keys for two purposes, or of two keys, have nothing in common', () => {
  const key = Buffer.alloc(32, 1)
  const derived = [deriveKey(key, 'one'), deriveKey(key, 'two'), deriveKey(Buffer.alloc(32, 2), 'one'), key]

  expect(new Set(derived.map((one) => one.toString('hex'))).size).toBe(4)
  expect(derived.every((one) => one.length === 32)).toBe(true)
  expect(deriveKey(key, 'one')).toEqual(derived[0])
})
