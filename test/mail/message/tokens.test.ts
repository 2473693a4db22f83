import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { idPattern } from '../../../contract/ids.ts'
import { idOfUuid } from '../../../server/ids.ts'
import { createMailTokens } from '../../../server/mail/message/tokens.ts'
import { deriveKey } from '../../../server/secrets.ts'
import { tokens } from './world.ts'

const other = createMailTokens(Buffer.alloc(32, 8))

const emailIds = fc.uuid().map((uuid) => idOfUuid('email', uuid))
const positions = fc.nat({ max: 65_535 })
const accountIds = fc.uuid().map((uuid) => idOfUuid('account', uuid))
const addresses = fc.oneof(fc.emailAddress(), fc.constantFrom('jürgen@münchen.example', '"a b"@example.com'))
const leaving = fc.record({ emailId: emailIds, position: positions, accountId: accountIds, address: addresses })
const recipients = fc.record({ emailId: emailIds, position: positions })
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

describe('the return path', () => {
  test('tells of its email, in any letter case and at any host, and fits into an address', () => {
    fc.assert(
      fc.property(emailIds, fc.infiniteStream(fc.boolean()), (emailId, upper) => {
        const address = tokens.returnPath(emailId, 'send.example.com')
        const shouted = [...address].map((char) => (upper.next().value ? char.toUpperCase() : char)).join('')

        expect(address).toMatch(/^b\.[a-z0-9]{42}@send\.example\.com$/)
        expect(tokens.readReturnPath(shouted)).toBe(emailId)
        expect(tokens.readReturnPath(address.replace('send.example.com', 'elsewhere.example'))).toBe(emailId)
        expect(tokens.readEmailId(tokens.emailId(emailId).toUpperCase())).toBe(emailId)
        expect(other.readReturnPath(address)).toBeNull()
      }),
    )
  })

  test('that was tampered with tells nothing', () => {
    const emailAndChanged = emailIds.chain((emailId) => {
      const token = tokens.emailId(emailId)
      return tampered(token, '0123456789abcdefghjkmnpqrstvwxyzilou-._@ ')
    })
    fc.assert(
      fc.property(emailAndChanged, (token) => {
        expect(tokens.readEmailId(token)).toBeNull()
        expect(tokens.readReturnPath(`b.${token}@send.example.com`)).toBeNull()
      }),
      { numRuns: 500 },
    )
  })

  test.each([
    '',
    '@',
    'b.@x',
    'x',
    'postmaster@send.example.com',
    'b.email_01jqz4x7m8e5v9t2k6r3w0y1ab@x',
    'é'.repeat(42),
  ])('is not %j', (address) => {
    expect(tokens.readReturnPath(address)).toBeNull()
    expect(tokens.readEmailId(address)).toBeNull()
  })
})

describe('the token of a link', () => {
  test('tells what it was made of', () => {
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

  test('is of one purpose and of one key', () => {
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

  test('that was tampered with tells nothing, a changed letter case included', () => {
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
})

test('keys for two purposes, or of two keys, have nothing in common', () => {
  const key = Buffer.alloc(32, 1)
  const derived = [deriveKey(key, 'one'), deriveKey(key, 'two'), deriveKey(Buffer.alloc(32, 2), 'one'), key]

  expect(new Set(derived.map((one) => one.toString('hex'))).size).toBe(4)
  expect(derived.every((one) => one.length === 32)).toBe(true)
  expect(deriveKey(key, 'one')).toEqual(derived[0])
})
