import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { secretBox } from '../../../server/secrets/secret-box.ts'
import { createKeyring } from '../../../server/webhook-delivery/attempt/keyring.ts'

const now = new Date('2026-03-01T09:30:00.000Z')
const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
const previous = `whsec_${Buffer.alloc(32, 2).toString('base64')}`
const box = secretBox(randomBytes(32))

function row(text: string, rotated: { previous: string; until: number } | null = null) {
  return {
    secret: box.seal(text),
    previous_secret: rotated === null ? null : box.seal(rotated.previous),
    previous_secret_expires_at: rotated === null ? null : new Date(now.getTime() + rotated.until),
    earlier_secrets: [],
    earlier_secrets_expire_at: [],
  }
}

/** A keyring that tells how often it opened a secret. */
function countingKeyring() {
  let opened = 0
  const open = (sealed: Buffer) => {
    opened += 1
    return box.open(sealed)
  }
  return { opened: () => opened, keyring: createKeyring({ ...box, open }) }
}

const keyText = (key: { text: { export(): Buffer } } | null) => key?.text.export().toString() ?? null

test('a previous secret signs until it expires', () => {
  const keyring = createKeyring(box)
  const keysOf = (until: number) => keyring.keysOf(row(secret, { previous, until }), now)
  expect([keyText(keysOf(1).key), keysOf(1).previousKeys.map(keyText)]).toEqual([secret, [previous]])
  expect(keysOf(0).previousKeys).toEqual([])
  expect(keyring.keysOf(row(secret), now).previousKeys).toEqual([])
})

test('earlier secrets sign too while they are valid, the latest four of all', () => {
  const keyring = createKeyring(box)
  const earlier = ['a', 'b', 'c', 'd', 'e'].map((letter) => `whsec_${Buffer.alloc(32, letter).toString('base64')}`)
  const keysOf = (texts: readonly string[], untils: readonly number[]) =>
    keyring
      .keysOf(
        {
          ...row(secret, { previous, until: 5 }),
          earlier_secrets: texts.map((text) => box.seal(text)),
          earlier_secrets_expire_at: untils.map((until) => new Date(now.getTime() + until)),
        },
        now,
      )
      .previousKeys.map(keyText)
  expect(keysOf(earlier, [4, 3, 2, 1, 1])).toEqual([previous, ...earlier.slice(0, 3)])
  expect(keysOf(earlier.slice(0, 3), [4, 0, 3])).toEqual([previous, earlier[0], earlier[2]])
})

test('a key is opened once for as long as it is kept', () => {
  const { opened, keyring } = countingKeyring()
  const sealed = row(secret)
  for (let turn = 0; turn < 3; turn++) expect(keyText(keyring.keysOf(sealed, now).key)).toBe(secret)
  expect(opened()).toBe(1)

  // The same text sealed anew is another secret to it.
  keyring.keysOf(row(secret), now)
  expect(opened()).toBe(2)
})

test('a keyring keeps ten thousand keys at most, and opens the others again', () => {
  const { opened, keyring } = countingKeyring()
  const sealed = Array.from({ length: 10_001 }, () => row(secret))
  for (const one of sealed) keyring.keysOf(one, now)
  expect(opened()).toBe(10_001)
  keyring.keysOf(sealed[10_000] ?? expect.fail(), now)
  expect(opened()).toBe(10_001)
  keyring.keysOf(sealed[0] ?? expect.fail(), now)
  expect(opened()).toBe(10_002)
})

test('a secret sealed with another key is refused each time', () => {
  const keyring = createKeyring(secretBox(randomBytes(32)))
  const sealed = row(secret)
  for (let turn = 0; turn < 2; turn++) expect(() => keyring.keysOf(sealed, now)).toThrow()
})
