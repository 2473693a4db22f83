import { expect, test } from 'vitest'
import { type ReadMessageOptions, readMessage } from '../../server/smtp-listener/read-message.ts'
import { liveBytes } from '../support/live-bytes.ts'

const megabyte = 1_048_576

function read(stream: AsyncIterable<Buffer>, options: Partial<ReadMessageOptions> = {}) {
  const limits = { maxBytes: 64 * megabyte, keepBytes: 64 * megabyte, smallBytes: megabyte }
  return readMessage(stream, { ...limits, onLarge: async () => undefined, ...options })
}

async function* pieces(piece: string, count: number, onEnd?: () => void): AsyncGenerator<Buffer> {
  for (let index = 0; index < count; index++) yield Buffer.from(piece)
  onEnd?.()
}

test('lines that come one by one take memory by their characters, not by their number', async () => {
  // As they come where each begins with a dot.
  const [line, lines] = ['.\n', 300_000]
  const before = liveBytes()
  let held = Number.POSITIVE_INFINITY
  const message = await read(
    pieces(line, lines, () => {
      held = liveBytes() - before
    }),
  )
  expect(message).toHaveLength(line.length * lines)
  expect(held).toBeLessThan(10 * megabyte)
})

test('of a long message the beginning is kept, and nobody is waited for', async () => {
  let isLarge = false
  const onLarge = async () => {
    isLarge = true
  }
  const message = await read(pieces('x'.repeat(60_000), 900), { keepBytes: megabyte, onLarge })
  expect(message?.equals(Buffer.alloc(megabyte, 'x'))).toBe(true)
  expect(isLarge).toBe(false)
})

test('a message that is longer than the limit is none, and read to its end', async () => {
  let isRead = false
  const message = await read(
    pieces('0123456789', 11, () => {
      isRead = true
    }),
    { maxBytes: 100 },
  )
  expect([message, isRead]).toEqual([null, true])
  expect(await read(pieces('0123456789', 10), { maxBytes: 100 })).toHaveLength(100)
})

test('a large message waits once, before more of it is kept', async () => {
  let waits = 0
  const onLarge = async () => {
    waits += 1
  }
  await read(pieces('x'.repeat(10), 30), { smallBytes: 100, onLarge })
  await read(pieces('x'.repeat(10), 10), { smallBytes: 100, onLarge })
  expect(waits).toBe(1)
})
