import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mapYielding, slicesYielding, sliceYielding } from '../../server/lib/yielding.ts'

/** Work that takes some milliseconds of the processor. */
function busy(ms: number): void {
  const since = performance.now()
  while (performance.now() - since < ms);
}

/** Notes every turn of the event loop from now on. */
function noteTurns(order: string[]): () => void {
  let isOver = false
  const turn = () => {
    order.push('turn')
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  return () => {
    isOver = true
  }
}

test('a long list is mapped in order, and the event loop turns meanwhile', async () => {
  const order: string[] = []
  const stop = noteTurns(order)
  const results = await mapYielding(['a', 'b', 'c', 'd'], (item, index) => {
    busy(11)
    order.push(item)
    return `${item}${index}`
  })
  stop()
  expect(results).toEqual(['a0', 'b1', 'c2', 'd3'])
  expect(order.filter((entry) => entry !== 'turn')).toEqual(['a', 'b', 'c', 'd'])
  for (const [first, second] of ['ab', 'bc', 'cd']) {
    expect(order.slice(order.indexOf(String(first)), order.indexOf(String(second)))).toContain('turn')
  }
})

test('bytes are taken slice by slice, each in a turn of its own', async () => {
  const order: string[] = []
  const stop = noteTurns(order)
  await sliceYielding(Buffer.from('abcde'), 2, (slice) => void order.push(slice.toString()))
  stop()
  expect(order.filter((entry) => entry !== 'turn')).toEqual(['ab', 'cd', 'e'])
  expect(order.indexOf('turn')).toBeLessThan(order.indexOf('cd'))
  await sliceYielding(Buffer.alloc(0), 2, () => {
    throw new Error('there is nothing')
  })
})

test('a text is taken slice by slice, each in a turn of its own, and no pair of surrogates is torn apart', async () => {
  const order: string[] = []
  const stop = noteTurns(order)
  for await (const slice of slicesYielding('ab😀c\ud83d', 3)) order.push(slice)
  stop()
  expect(order.filter((entry) => entry !== 'turn')).toEqual(['ab😀', 'c\ud83d'])
  expect(order.indexOf('turn')).toBeLessThan(order.indexOf('c\ud83d'))
})

test('the slices of a text are the text, whatever is in it', async () => {
  const texts = fc.string({ unit: fc.constantFrom('a', '😀', '\ud83d', '\ude00') })
  await fc.assert(
    fc.asyncProperty(texts, fc.integer({ min: 1, max: 5 }), async (text, length) => {
      const slices: string[] = []
      for await (const slice of slicesYielding(text, length)) slices.push(slice)
      expect(slices.join('')).toBe(text)
      if (text.isWellFormed()) expect(slices.every((slice) => slice.isWellFormed())).toBe(true)
    }),
  )
})
