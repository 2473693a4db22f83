import fc from 'fast-check'
import { expect, test } from 'vitest'
import { collectBytes, releaseBytes } from '../../server/lib/byte-buffer.ts'
import { liveBytes } from '../support/live-bytes.ts'

test('what is gathered is what came, up to the limit, however it was cut', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 300 }))
  fc.assert(
    fc.property(pieces, fc.nat(5_000), (given, maxBytes) => {
      const gathering = collectBytes(maxBytes)
      for (const piece of given) {
        const buffer = Buffer.from(piece)
        gathering.add(buffer)
        // Whose it is now is not ours to say.
        buffer.fill(0)
      }
      const whole = Buffer.concat(given)
      expect(gathering.length).toBe(whole.length)
      expect(gathering.take()).toEqual(whole.subarray(0, maxBytes))
    }),
  )
})

test('what is gathered is the same when memory is taken for it at any time, too little or too much', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 300 }))
  fc.assert(
    fc.property(pieces, fc.nat(20), fc.nat(5_000), fc.nat(5_000), (given, when, reserved, maxBytes) => {
      const gathering = collectBytes(maxBytes)
      for (const [index, piece] of given.entries()) {
        if (index === when) gathering.reserve(reserved)
        gathering.add(Buffer.from(piece))
      }
      expect(gathering.take()).toEqual(Buffer.concat(given).subarray(0, maxBytes))
    }),
  )
})

test('pieces larger than a block are kept whole', () => {
  const gathering = collectBytes(1_000_000)
  const large = Buffer.alloc(200_000, 'abc')
  for (const piece of [Buffer.from('x'), large, Buffer.from('y')]) gathering.add(piece)
  expect(gathering.take().equals(Buffer.concat([Buffer.from('x'), large, Buffer.from('y')]))).toBe(true)
})

test('many small pieces take no more memory than few large ones', () => {
  const bytes = 500_000
  const gathering = collectBytes(bytes)
  const before = liveBytes()
  for (let index = 0; index < bytes; index++) gathering.add(Buffer.from([index & 0xff]))
  expect(liveBytes() - before).toBeLessThan(10_000_000)
  expect(gathering.take()).toHaveLength(bytes)
})

test('the memory of large bytes is given back at once, and small ones, which share theirs, stay', () => {
  const large = Buffer.allocUnsafe(2_000_000).fill('x')
  const part = Buffer.alloc(4_000_000, 'y').subarray(1, 2_000_001)
  const small = Buffer.from('small')
  for (const bytes of [large, part, small]) releaseBytes(bytes)
  expect(large).toHaveLength(0)
  expect(part.equals(Buffer.alloc(2_000_000, 'y'))).toBe(true)
  expect(small.toString()).toBe('small')
})
