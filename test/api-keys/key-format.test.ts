import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { hashOfKey, hasKeyShape, lastFourOf, newKey } from '../../server/api-keys/key-format.ts'

test('a new key tells its mode and has the shape of a key', () => {
  expect(newKey('test')).toMatch(/^postern_test_[0-9A-Za-z]{43}$/)
  expect(newKey('live')).toMatch(/^postern_live_[0-9A-Za-z]{43}$/)
  for (let made = 0; made < 1_000; made++) expect(hasKeyShape(newKey('live'))).toBe(true)
})

test('a new key is another one each time', () => {
  const keys = Array.from({ length: 1_000 }, () => newKey('test'))
  expect(new Set(keys).size).toBe(1_000)
})

const key = `postern_live_${'Ab1'.repeat(14)}z`

test.each([
  ['the key itself', key, true],
  ['a line break at the end', `${key}\n`, false],
  ['a space before', ` ${key}`, false],
  ['a character less', key.slice(0, -1), false],
  ['a character more', `${key}a`, false],
  ['another product', key.replace('postern', 'service'), false],
  ['another mode', key.replace('live', 'prod'), false],
  ['capital letters', key.toUpperCase(), false],
  ['a character of no key', key.replace('Ab1', 'A-1'), false],
  ['nothing', '', false],
])('the shape of a key: %s', (_, text, expected) => {
  expect(hasKeyShape(text)).toBe(expected)
})

test('of a key its SHA-256 and its end are kept', () => {
  expect(hashOfKey(key).toString('hex')).toBe(createHash('sha256').update(key, 'utf8').digest('hex'))
  expect(lastFourOf(key)).toBe('Ab1z')
})
